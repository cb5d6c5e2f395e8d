package starter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestWhatAResultLacksIsNamed(t *testing.T) {
	def := contract.Definition{
		Tools: map[string]contract.Tool{
			"db/create": {
				Inspect:    &contract.Inspect{Args: contract.Template(`{"name": "${args.name}"}`)},
				Compensate: &contract.Compensate{Args: contract.Template(`{"id": "${result.id}"}`)},
			},
			"app/run": {},
		},
		Steps: []contract.Step{
			{ID: "db", Tool: "db/create", Args: contract.Template(`{"name": "x"}`)},
			{ID: "app", Tool: "app/run", Args: contract.Template(`{"db": "${steps.db.result.id}", "url": "at ${steps.db.result.hosts[0]}", "again": "${steps.db.result.id}"}`)},
			{ID: "end", Tool: "app/run"},
		},
	}
	for _, test := range []struct {
		step, result string
		later, own   []string
	}{
		{"db", "", []string{"${steps.db.result.id} (step app)", "${steps.db.result.hosts[0]} (step app)"}, []string{"${result.id}"}},
		{"db", `{"id": 1}`, []string{"${steps.db.result.hosts[0]} (step app)"}, nil},
		{"db", `{"id": 1, "hosts": ["a"]}`, nil, nil},
		{"app", "", nil, nil},
		{"end", "", nil, nil},
	} {
		later, own := lacking(def, test.step, json.RawMessage(test.result))
		require.Equal(t, test.later, later, test)
		require.Equal(t, test.own, own, test)
	}
}

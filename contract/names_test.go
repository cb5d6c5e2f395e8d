package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestSearchToolsFitIntoASearchAttribute(t *testing.T) {
	var def contract.Definition
	for i := range 1000 {
		def.Steps = append(def.Steps, contract.Step{Tool: fmt.Sprintf("server/tool_%d", i%900)})
	}
	tools := def.SearchTools()
	raw, err := json.Marshal(tools)
	require.NoError(t, err)
	require.Less(t, len(raw), 2048)
	require.Greater(t, len(tools), 100)

	def.Steps = []contract.Step{{Tool: "a/b"}, {Tool: "a/c"}, {Tool: "a/b"}, {Tool: strings.Repeat("ü", 200)}}
	tools = def.SearchTools()
	require.Equal(t, []string{"a/b", "a/c", strings.Repeat("ü", 127)}, tools, "each once, cut between characters")
}

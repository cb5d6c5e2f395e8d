package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
)

func TestWorkflowIDs(t *testing.T) {
	for _, c := range []struct{ plan, intent, id string }{
		{"provision-workspace", "0123abcd", "provision-workspace/0123abcd"},
		{"provision-workspace", "order 7/50%", "provision-workspace/order%207/50%25"},
		{"gründe", "日本", "gr%C3%BCnde/%E6%97%A5%E6%9C%AC"},
	} {
		id := contract.PlanWorkflowID(c.plan, c.intent)
		require.Equal(t, c.id, id)
		require.Equal(t, c.plan, contract.PlanOf(id))
	}
	require.Empty(t, contract.PlanOf("by-hand"))
	require.Equal(t, "routing-0123abcd.create%E2%9C%93/f", contract.CallWorkflowID(contract.ServerRef{Name: "routing", ID: "0123abcd"}, "create✓", "f"))
}

func TestWorkflowIDsArePrintableASCIIAndTellIntentsApart(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		intent := rapid.String().Draw(t, "intent")
		id := contract.PlanWorkflowID("p", intent)
		for _, c := range []byte(id) {
			require.True(t, c > ' ' && c < 0x7f, "%q", id)
		}
		if earlier, ok := seen[id]; ok {
			require.Equal(t, earlier, intent)
		}
		seen[id] = intent
		require.Equal(t, "p", contract.PlanOf(id))
	})
}

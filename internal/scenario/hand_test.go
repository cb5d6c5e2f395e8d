package scenario_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/mcpx-go/mcpx/contract"
)

// startByHand starts a transaction as Temporal's own UI does: one JSON argument, and nothing else.
func startByHand(t *testing.T, w *world, id string, argument json.RawMessage) {
	t.Helper()
	_, err := w.Client.Temporal().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: contract.TaskQueue,
	}, contract.WorkflowTransaction, argument)
	require.NoError(t, err)
}

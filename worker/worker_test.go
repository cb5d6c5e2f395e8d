package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/devserver/devtest"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/worker"
)

const text = `version: 1
servers: {gone: {http: {url: "http://127.0.0.1:1/mcp"}}}
defaults: {ttl: 168h}
tools: {gone/do: {risk: read_only}}
plans: [{name: one, steps: [{id: a, tool: gone/do}]}]
`

// options are those of a worker in a namespace that a test made.
func options(t *testing.T, s *devserver.Server, namespace string) worker.Options {
	t.Helper()
	m, err := manifest.Parse("mcpx.yaml", []byte(text))
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Dial(client.Options{HostPort: s.Address(), Namespace: namespace, Logger: log.NewStructuredLogger(quiet)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return worker.Options{Client: c, Namespace: namespace, Manifest: m, Logger: quiet}
}

// A namespace that forgets too soon would let the same intent be executed again.
func TestAWorkerRefusesANamespaceThatForgetsTooSoon(t *testing.T) {
	s := devtest.Start(t, devserver.Options{Namespace: "short", Retention: 24 * time.Hour})
	_, err := worker.Start(t.Context(), options(t, s, "short"))
	require.ErrorContains(t, err, "24h")
	require.ErrorContains(t, err, "168h")
	require.ErrorContains(t, err, "namespace update --retention")

	_, err = worker.Start(t.Context(), options(t, s, "nowhere"))
	require.ErrorContains(t, err, "does not exist")
	require.ErrorContains(t, err, "namespace create")
}

// An attribute that is not registered must not be set: the server would refuse the workflow task for ever.
func TestTransactionsEndWithoutSearchAttributes(t *testing.T) {
	s := devtest.Start(t, devserver.Options{Namespace: "plain", Retention: 200 * time.Hour})
	o := options(t, s, "plain")
	w, err := worker.Start(t.Context(), o)
	require.NoError(t, err)
	defer w.Stop()
	require.Len(t, w.Queues(), 2)
	run, err := o.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "one/by-hand", TaskQueue: contract.TaskQueue},
		contract.WorkflowTransaction, map[string]any{"plan": "other"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var app *temporal.ApplicationError
	require.ErrorAs(t, run.Get(ctx, nil), &app)
	require.Equal(t, contract.ErrorStart, app.Type())

	run, err = o.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "one/again", TaskQueue: contract.TaskQueue},
		contract.WorkflowTransaction, map[string]any{"plan": "one"})
	require.NoError(t, err)
	require.ErrorAs(t, run.Get(ctx, nil), &app)
	require.Equal(t, string(contract.TxFailed), app.Type())
}

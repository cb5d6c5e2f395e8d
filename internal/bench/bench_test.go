package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/activities"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/visibility"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/toolclient"
	"github.com/mcpx-go/mcpx/workflows"
)

const (
	bareWorkflow = "Bare"
	bareActivity = "BareCall"
	steps        = 4
	wide         = 10
	slow         = 200 * time.Millisecond
)

// bench is one Temporal server, one MCP server, and workers that host Transaction beside the bare workflow, on the same
// queues.
type bench struct {
	client   client.Client
	manifest *manifest.Manifest
	server   contract.ServerRef
	n        int
}

func start(b *testing.B) *bench {
	temporalServer, err := devserver.Start(context.Background(), devserver.Options{
		DataDir: b.TempDir(), Namespace: contract.Namespace, Retention: 31 * 24 * time.Hour,
		SearchAttributes: visibility.Attributes,
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, temporalServer.Stop(context.Background())) })
	quiet := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	c, err := client.Dial(client.Options{HostPort: temporalServer.Address(), Namespace: contract.Namespace, Logger: quiet})
	require.NoError(b, err)
	b.Cleanup(c.Close)

	owner := httptest.NewServer(owner())
	b.Cleanup(owner.Close)
	m, err := manifest.Parse("bench.yaml", []byte(plans(owner.URL)))
	require.NoError(b, err)
	pool := toolclient.NewPool(toolclient.Options{Logger: slog.New(slog.DiscardHandler)})
	b.Cleanup(func() { require.NoError(b, pool.Close()) })
	acts := &activities.Activities{Manifest: m, Pool: pool, Worker: "bench", SearchAttributes: true}
	ref := m.Servers["owner"].Ref()
	require.NoError(b, pool.Add(m.Servers["owner"]))

	control := worker.New(c, contract.TaskQueue, worker.Options{})
	control.RegisterWorkflowWithOptions(workflows.Transaction, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	control.RegisterWorkflowWithOptions(bare, workflow.RegisterOptions{Name: bareWorkflow})
	acts.RegisterControl(control)
	calls := worker.New(c, ref.Queue(), worker.Options{DisableWorkflowWorker: true})
	acts.RegisterCalls(calls)
	calls.RegisterActivityWithOptions(func(ctx context.Context, call contract.Call) (json.RawMessage, error) {
		reply := pool.Call(ctx, call.Server, toolclient.Call{Tool: call.Tool, Args: call.Args})
		if reply.Written != contract.Answered {
			return nil, fmt.Errorf("%s", reply.Why)
		}
		return reply.Result, nil
	}, activity.RegisterOptions{Name: bareActivity})
	for _, w := range []worker.Worker{control, calls} {
		require.NoError(b, w.Start())
		b.Cleanup(w.Stop)
	}
	return &bench{client: c, manifest: m, server: ref}
}

// owner is an MCP server with a tool that answers at once and one that takes its time.
func owner() http.Handler {
	s := server.NewMCPServer("bench", "1")
	answer := func(wait time.Duration) server.ToolHandlerFunc {
		return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(wait)
			return mcp.NewToolResultText(`{"id":"x"}`), nil
		}
	}
	for name, wait := range map[string]time.Duration{"make": 0, "make_slowly": slow} {
		s.AddTool(mcp.NewTool(name, mcp.WithString("on")), answer(wait))
	}
	s.AddTool(mcp.NewTool("look"), answer(0))
	s.AddTool(mcp.NewTool("undo"), answer(0))
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateLess(true)))
	return mux
}

func plans(url string) string {
	return fmt.Sprintf(`version: 1
servers: {owner: {http: {url: %q}}}
tools:
  owner/make: &contract
    inspect: {tool: look, present: response.owner == tx.id, absent: error.code == "NOT_FOUND"}
    compensate: {tool: undo}
  owner/make_slowly: *contract
plans:
  - name: chain
    steps:
      - {id: a, tool: owner/make}
      - {id: b, tool: owner/make, args: {on: "${steps.a.result.id}"}}
      - {id: c, tool: owner/make, args: {on: "${steps.b.result.id}"}}
      - {id: d, tool: owner/make, args: {on: "${steps.c.result.id}"}}
  - name: wide
    steps: [%s]
`, url+"/mcp", wideSteps())
}

func wideSteps() string {
	text := ""
	for i := range wide {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("{id: s%d, tool: owner/make_slowly}", i)
	}
	return text
}

// bare makes the same calls, one after another, and promises nothing.
func bare(ctx workflow.Context, server contract.ServerRef) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: server.Queue(), StartToCloseTimeout: 17 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	args := json.RawMessage(`{}`)
	for range steps {
		call := contract.Call{Server: server, Tool: "make", Args: args}
		if err := workflow.ExecuteActivity(ctx, bareActivity, call).Get(ctx, nil); err != nil {
			return err
		}
		args = json.RawMessage(`{"on":"x"}`)
	}
	return nil
}

// run starts a workflow and waits for its end. It returns how long that took, and the run.
func (s *bench) run(b *testing.B, name string, arg any) (time.Duration, client.WorkflowRun) {
	s.n++
	options := client.StartWorkflowOptions{ID: fmt.Sprintf("%s/%d", name, s.n), TaskQueue: contract.TaskQueue}
	kind := bareWorkflow
	if plan, ok := arg.(contract.Start); ok {
		kind = contract.WorkflowTransaction
		options.TypedSearchAttributes = temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(contract.SearchState).ValueSet(string(contract.TxRunning)),
			temporal.NewSearchAttributeKeyKeyword(contract.SearchPlan).ValueSet(plan.Plan),
			temporal.NewSearchAttributeKeyKeywordList(contract.SearchTools).ValueSet([]string{"owner/make"}),
		)
	}
	begin := time.Now()
	run, err := s.client.ExecuteWorkflow(context.Background(), options, kind, arg)
	require.NoError(b, err)
	require.NoError(b, run.Get(context.Background(), nil))
	return time.Since(begin), run
}

func (s *bench) events(b *testing.B, run client.WorkflowRun) int {
	history := s.client.GetWorkflowHistory(context.Background(), run.GetID(), run.GetRunID(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	n := 0
	for history.HasNext() {
		_, err := history.Next()
		require.NoError(b, err)
		n++
	}
	return n
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkFourSteps runs pairs of a four-step transaction and a bare workflow with the same four calls on the same
// queues. ratio is 1 plus the median of the paired differences over the bare median.
func BenchmarkFourSteps(b *testing.B) {
	s := start(b)
	start := contract.Start{Plan: "chain", Identity: &contract.Identity{}}
	for range 5 { // the first ones open sessions and fill caches
		s.run(b, "warm", s.server)
		s.run(b, "chain", start)
	}
	var differences, bares []float64
	var last, lastBare client.WorkflowRun
	b.ResetTimer()
	for i := range b.N {
		var tx, plain time.Duration
		if i%2 == 0 {
			tx, last = s.run(b, "chain", start)
			plain, lastBare = s.run(b, "bare", s.server)
		} else {
			plain, lastBare = s.run(b, "bare", s.server)
			tx, last = s.run(b, "chain", start)
		}
		differences = append(differences, (tx-plain).Seconds()*1000)
		bares = append(bares, plain.Seconds()*1000)
	}
	b.StopTimer()
	base := median(bares)
	b.ReportMetric(base, "bare-ms")
	b.ReportMetric(base+median(differences), "transaction-ms")
	b.ReportMetric(1+median(differences)/base, "ratio")
	b.ReportMetric(float64(s.events(b, last)-s.events(b, lastBare)), "more-events")
}

// BenchmarkTenIndependentSteps runs ten steps of 200 ms each that do not need each other. overlap is how many times
// faster that is than one after another.
func BenchmarkTenIndependentSteps(b *testing.B) {
	s := start(b)
	start := contract.Start{Plan: "wide", Identity: &contract.Identity{}}
	s.run(b, "wide", start)
	var took []float64
	b.ResetTimer()
	for range b.N {
		d, _ := s.run(b, "wide", start)
		took = append(took, d.Seconds()*1000)
	}
	b.ReportMetric(median(took), "transaction-ms")
	b.ReportMetric(wide*slow.Seconds()*1000/median(took), "overlap")
}

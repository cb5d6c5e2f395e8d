package workflows_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/devserver/devtest"
	"github.com/mcpx-go/mcpx/workflows"
)

// live is a real Temporal server with workers, for what the SDK's test environment cannot show: resets, what was handed
// to a worker, what is written to the history, and that a replay decides the same.
type live struct {
	client  client.Client
	control worker.Worker

	mu     sync.Mutex
	owners map[string]*owner // by workflow ID
}

// owner is what one transaction sees of the world.
type owner struct {
	def     contract.Definition
	answer  map[string]func(context.Context) string // by "execute:step": the word that says what the call does
	mu      sync.Mutex
	effects map[string]int
	made    map[string]int
	log     []string
}

func newLive(t *testing.T, o devserver.Options) *live {
	o.Namespace = "mcpx"
	o.SearchAttributes = map[string]enumspb.IndexedValueType{
		contract.SearchState: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		contract.SearchPlan:  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		contract.SearchTools: enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	}
	server := devtest.Start(t, o)
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	c, err := client.Dial(client.Options{HostPort: server.Address(), Namespace: "mcpx", Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	l := &live{client: c, owners: map[string]*owner{}}
	calls := worker.New(c, contract.ServerRef{Name: "owner", ID: "0123abcd"}.Queue(), worker.Options{DisableWorkflowWorker: true})
	calls.RegisterActivityWithOptions(l.execute, activity.RegisterOptions{Name: contract.ActivityExecute})
	calls.RegisterActivityWithOptions(l.inspect, activity.RegisterOptions{Name: contract.ActivityInspect})
	calls.RegisterActivityWithOptions(l.compensate, activity.RegisterOptions{Name: contract.ActivityCompensate})
	require.NoError(t, calls.Start())
	t.Cleanup(calls.Stop)
	l.work(t)
	t.Cleanup(func() { l.control.Stop() })
	return l
}

// work starts the worker for workflows.
func (l *live) work(t *testing.T) {
	l.control = worker.New(l.client, contract.TaskQueue, worker.Options{})
	l.control.RegisterWorkflowWithOptions(workflows.Transaction, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	l.control.RegisterActivityWithOptions(l.resolve, activity.RegisterOptions{Name: contract.ActivityResolve})
	l.control.RegisterActivityWithOptions(func(ctx context.Context) (string, error) {
		return activity.GetInfo(ctx).WorkflowExecution.RunID, nil
	}, activity.RegisterOptions{Name: contract.ActivityGeneration})
	require.NoError(t, l.control.Start())
}

func (l *live) owner(ctx context.Context) *owner {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owners[activity.GetInfo(ctx).WorkflowExecution.ID]
}

func (l *live) resolve(ctx context.Context, _ contract.Start) (contract.Resolved, error) {
	return contract.Resolved{Definition: l.owner(ctx).def, SearchAttributes: true}, nil
}

func (o *owner) begin(ctx context.Context, kind contract.CallKind, step string) string {
	word := ""
	if answer := o.answer[string(kind)+":"+step]; answer != nil {
		word = answer(ctx)
	}
	o.mu.Lock()
	o.log = append(o.log, string(kind)+" "+step)
	return word
}

func (l *live) execute(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	out := contract.Outcome{
		WriteDeadline: time.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallExecute, Attempt: call.Attempt, Tool: call.Tool},
	}
	if activity.GetInfo(ctx).WorkflowExecution.RunID != call.Tx.Run {
		out.Kind = contract.Reset
		return out, nil
	}
	o := l.owner(ctx)
	word := o.begin(ctx, contract.CallExecute, call.Step)
	defer o.mu.Unlock()
	if word == "refuse" {
		out.Kind, out.Why = contract.Refused, "REJECTED: no"
		return out, nil
	}
	if word != "lost-before" {
		o.effects[call.Step]++
		o.made[call.Step]++
	}
	if word != "" {
		out.Kind, out.Why = contract.Unknown, "connection reset"
		return out, nil
	}
	out.Kind, out.Result = contract.Acknowledged, withID(call.Step)
	return out, nil
}

func (l *live) inspect(ctx context.Context, request contract.Inspection) (contract.Look, error) {
	o := l.owner(ctx)
	word := o.begin(ctx, contract.CallInspect, request.Step)
	defer o.mu.Unlock()
	look := contract.Look{Verdict: contract.Absent, Evidence: contract.Evidence{Call: contract.CallInspect, Tool: request.Tool}}
	switch {
	case word == "fail":
		look.Verdict = contract.Inconclusive
	case o.effects[request.Step] > 0:
		look.Verdict, look.Result = contract.Present, withID(request.Step)
	}
	return look, nil
}

func (l *live) compensate(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	if activity.GetInfo(ctx).WorkflowExecution.RunID != call.Tx.Run {
		return contract.Outcome{Kind: contract.Reset}, nil
	}
	o := l.owner(ctx)
	o.begin(ctx, contract.CallCompensate, call.Step)
	defer o.mu.Unlock()
	o.effects[call.Step] = max(0, o.effects[call.Step]-1)
	return contract.Outcome{Kind: contract.Acknowledged}, nil
}

// seen is what has been called, and what exists.
func (o *owner) seen() (log []string, effects, made map[string]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	effects, made = map[string]int{}, map[string]int{}
	for step, n := range o.effects {
		if n > 0 {
			effects[step] = n
		}
	}
	for step, n := range o.made {
		made[step] = n
	}
	return slices.Clone(o.log), effects, made
}

func (o *owner) count(entry string) int {
	log, _, _ := o.seen()
	n := 0
	for _, line := range log {
		if line == entry {
			n++
		}
	}
	return n
}

// quick makes a plan's owners quick.
func quick(def contract.Definition) contract.Definition {
	for ref, tool := range def.Tools {
		tool.Timeout, tool.Settle = contract.Duration(300*time.Millisecond), contract.Duration(200*time.Millisecond)
		if tool.Compensate != nil {
			undo := *tool.Compensate
			undo.Timeout, undo.Settle = tool.Timeout, tool.Settle
			tool.Compensate = &undo
		}
		def.Tools[ref] = tool
	}
	return def
}

func always(word string) func(context.Context) string {
	return func(context.Context) string { return word }
}

// begin starts a transaction the way MCPx's own clients do.
func (l *live) begin(t *testing.T, id string, def contract.Definition, answer map[string]func(context.Context) string) *owner {
	o := &owner{def: quick(def), answer: answer, effects: map[string]int{}, made: map[string]int{}}
	l.mu.Lock()
	l.owners[id] = o
	l.mu.Unlock()
	_, err := l.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: contract.TaskQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(contract.SearchState).ValueSet(string(contract.TxRunning)),
			temporal.NewSearchAttributeKeyKeyword(contract.SearchPlan).ValueSet(def.Plan),
			temporal.NewSearchAttributeKeyKeywordList(contract.SearchTools).ValueSet(def.SearchTools()),
		),
	}, contract.WorkflowTransaction, contract.Start{Plan: def.Plan, Input: []byte(`{}`), Requester: "agent", Identity: &contract.Identity{}})
	require.NoError(t, err)
	return o
}

func (l *live) snapshot(t *testing.T, id string) contract.Snapshot {
	var snapshot contract.Snapshot
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		value, err := l.client.QueryWorkflow(context.Background(), id, "", contract.QuerySnapshot)
		require.NoError(t, err)
		require.NoError(t, value.Get(&snapshot))
	}, time.Minute, 20*time.Millisecond)
	return snapshot
}

// until waits until the transaction looks like something.
func (l *live) until(t *testing.T, id string, sees func(contract.Snapshot) bool) contract.Snapshot {
	t.Helper()
	var snapshot contract.Snapshot
	require.Eventually(t, func() bool {
		snapshot = l.snapshot(t, id)
		return sees(snapshot)
	}, time.Minute, 20*time.Millisecond)
	return snapshot
}

func inState(state contract.TxState) func(contract.Snapshot) bool {
	return func(s contract.Snapshot) bool { return s.State == state }
}

func (l *live) signal(t *testing.T, id, name string, payload any) {
	require.NoError(t, l.client.SignalWorkflow(t.Context(), id, "", name, payload))
}

// end waits for the end of the transaction, over all its runs, and checks that a replay of each decides the same.
func (l *live) end(t *testing.T, id string) contract.Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var receipt contract.Receipt
	if err := l.client.GetWorkflow(ctx, id, "").Get(ctx, &receipt); err != nil {
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.NoError(t, app.Details(&receipt))
		require.Equal(t, string(receipt.State), app.Type())
	}
	l.replay(t, id, "")
	return receipt
}

// replay replays a run, and those that it continued.
func (l *live) replay(t *testing.T, id, run string) {
	described, err := l.client.DescribeWorkflow(t.Context(), id, run)
	require.NoError(t, err)
	events := l.history(t, id, run)
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(workflows.Transaction, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, &historypb.History{Events: events}, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: described.WorkflowExecution,
	}))
	if before := events[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); before != "" {
		l.replay(t, id, before)
	}
}

func (l *live) history(t *testing.T, id, run string) []*historypb.HistoryEvent {
	var events []*historypb.HistoryEvent
	it := l.client.GetWorkflowHistory(t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		event, err := it.Next()
		require.NoError(t, err)
		events = append(events, event)
	}
	return events
}

// kinds counts the events of a history by type.
func kinds(events []*historypb.HistoryEvent) map[string]int {
	counts := map[string]int{}
	for _, event := range events {
		counts[event.GetEventType().String()]++
	}
	return counts
}

// shortHistories is a Temporal server that finds histories long very soon.
func shortHistories(t *testing.T) devserver.Options {
	binary, err := devserver.Find()
	if err != nil {
		t.Skip(err)
	}
	script := filepath.Join(t.TempDir(), "temporal")
	require.NoError(t, os.WriteFile(script, []byte(fmt.Sprintf(
		"#!/bin/sh\nexec %q \"$@\" --dynamic-config-value limit.historyCount.suggestContinueAsNew=40\n", binary)), 0o700))
	return devserver.Options{Binary: script}
}

// reset resets a run. Not every workflow task is a point to which Temporal can go back.
func (l *live) reset(t *testing.T, id, run string, event int64) bool {
	_, err := l.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "mcpx", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "test", WorkflowTaskFinishEventId: event, RequestId: uuid.NewString(),
	})
	if err != nil {
		require.ErrorAs(t, err, new(*serviceerror.InvalidArgument))
	}
	return err == nil
}

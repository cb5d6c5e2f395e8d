package workflows_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

func TestOnARealServer(t *testing.T) {
	l := newLive(t, devserver.Options{})

	t.Run("the happy path writes one marker and one upsert, and nothing else", func(t *testing.T) {
		l.begin(t, "happy", chain("a", "b", "c", "d"), nil)
		require.Equal(t, contract.TxCommitted, l.end(t, "happy").State)
		require.Equal(t, map[string]int{
			"WorkflowExecutionStarted": 1, "MarkerRecorded": 1, "UpsertWorkflowSearchAttributes": 1, "WorkflowExecutionCompleted": 1,
			"ActivityTaskScheduled": 4, "ActivityTaskStarted": 4, "ActivityTaskCompleted": 4,
			"WorkflowTaskScheduled": 5, "WorkflowTaskStarted": 5, "WorkflowTaskCompleted": 5,
		}, kinds(l.history(t, "happy", "")))
		description, err := l.client.DescribeWorkflow(t.Context(), "happy", "")
		require.NoError(t, err)
		state, ok := description.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(contract.SearchState))
		require.True(t, ok)
		require.Equal(t, "COMMITTED", state)
		require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, description.Status)
	})

	t.Run("a call that no worker has begun is recalled exactly", func(t *testing.T) {
		def := with(chain("a", "b"), "a", func(c *contract.Tool) { c.Server = "nobody" })
		def.Servers["nobody"] = contract.ServerRef{Name: "nobody", ID: "00000000"}
		o := l.begin(t, "recalled", def, nil)
		l.until(t, "recalled", func(s contract.Snapshot) bool { return s.Steps[0].State == contract.StepExecuting })
		require.NoError(t, l.client.CancelWorkflow(t.Context(), "recalled", ""))
		receipt := l.end(t, "recalled")
		require.Equal(t, contract.TxFailed, receipt.State)
		log, _, _ := o.seen()
		require.Empty(t, log, "nobody was asked: it is known that nothing happened")
		require.Zero(t, receipt.Steps[0].Attempts)
		require.Contains(t, receipt.Steps[0].Reason, "recalled before a worker began it")
	})

	t.Run("a call that was begun goes on when the transaction is aborted", func(t *testing.T) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		o := l.begin(t, "begun", chain("a", "b"), map[string]func(context.Context) string{"execute:a": func(ctx context.Context) string {
			close(begun)
			<-goOn
			if ctx.Err() != nil {
				return "lost-before"
			}
			return ""
		}})
		<-begun
		l.signal(t, "begun", contract.SignalAbort, contract.Decision{By: "bob"})
		l.until(t, "begun", func(s contract.Snapshot) bool { return len(s.Decisions) == 1 })
		close(goOn)
		s := l.until(t, "begun", inState(contract.TxAwaitingCompensationApproval))
		require.Equal(t, contract.StepCommitted, s.Steps[0].State, s.Steps[0].Reason)
		l.signal(t, "begun", contract.SignalApproveCompensation, contract.Decision{By: "alice"})
		receipt := l.end(t, "begun")
		require.Equal(t, contract.TxCompensated, receipt.State)
		require.Equal(t, 1, o.count("execute a"))
	})

	t.Run("a worker that is never heard of again leaves doubt", func(t *testing.T) {
		o := l.begin(t, "silent", chain("a"), map[string]func(context.Context) string{"execute:a": func(ctx context.Context) string {
			if activity.GetInfo(ctx).Attempt != 1 {
				panic("Temporal itself has repeated a mutation")
			}
			o := l.owner(ctx)
			if o.count("inspect a") == 0 {
				<-ctx.Done()
				return "lost-after" // which nobody hears
			}
			return ""
		}})
		receipt := l.end(t, "silent")
		require.Equal(t, contract.TxCommitted, receipt.State)
		require.Equal(t, contract.StepRecovered, receipt.Steps[0].State, receipt.Steps[0].Reason)
		require.Equal(t, 1, o.count("execute a"))
	})

	t.Run("a runner that does not come in time has executed nothing", func(t *testing.T) {
		def := with(chain("a"), "a", func(c *contract.Tool) { c.Server = "nobody" })
		def.Servers["nobody"] = contract.ServerRef{Name: "nobody", ID: "00000000"}
		def.Steps[0].NotAfter = contract.Duration(2 * time.Second)
		o := l.begin(t, "too late", def, nil)
		receipt := l.end(t, "too late")
		require.Equal(t, contract.TxFailed, receipt.State)
		require.Contains(t, receipt.Steps[0].Reason, "must not be later than 2s")
		log, _, _ := o.seen()
		require.Empty(t, log)
	})

	t.Run("what is said together with the last answer is judged before the end", func(t *testing.T) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		l.begin(t, "together", chain("a"), map[string]func(context.Context) string{"execute:a": func(context.Context) string {
			close(begun)
			<-goOn
			return ""
		}})
		<-begun
		l.control.Stop()
		close(goOn)
		require.Eventually(t, func() bool {
			return kinds(l.history(t, "together", ""))["ActivityTaskCompleted"] == 1
		}, time.Minute, 20*time.Millisecond)
		l.signal(t, "together", contract.SignalAbort, contract.Decision{By: "bob"})
		l.signal(t, "together", contract.SignalResume, "nonsense")
		l.work(t)
		receipt := l.end(t, "together")
		require.Equal(t, contract.TxCommitted, receipt.State)
		require.Len(t, receipt.Decisions, 2, "%v", decisions(receipt))
		for _, d := range receipt.Decisions {
			require.False(t, d.Accepted)
		}
	})

	t.Run("updates answer, and a rejected one writes nothing", func(t *testing.T) {
		l.begin(t, "updates", chain("a", "z"), map[string]func(context.Context) string{"execute:z": always("refuse")})
		s := l.until(t, "updates", inState(contract.TxAwaitingCompensationApproval))
		before := len(l.history(t, "updates", ""))
		update := func(payload any) (contract.Judged, error) {
			handle, err := l.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
				WorkflowID: "updates", UpdateName: contract.SignalApproveCompensation, Args: []any{payload},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			if err != nil {
				return contract.Judged{}, err
			}
			var judged contract.Judged
			return judged, handle.Get(t.Context(), &judged)
		}
		_, err := update(contract.Decision{By: "alice", Digest: "0123456789abcdef"})
		require.ErrorContains(t, err, "look at it again")
		_, err = update(map[string]any{"by": "alice", "digets": "x"})
		require.ErrorContains(t, err, "unknown field")
		require.Len(t, l.history(t, "updates", ""), before)
		judged, err := update(contract.Decision{By: "alice", Digest: s.Undo.Digest})
		require.NoError(t, err)
		require.True(t, judged.Accepted)
		require.Equal(t, contract.TxCompensated, l.end(t, "updates").State)
	})

	t.Run("a wide plan does not choke Temporal", func(t *testing.T) {
		var steps []contract.Step
		for i := range 200 {
			steps = append(steps, contract.Step{ID: fmt.Sprintf("s%d", i),
				Args: contract.Template(`{"text":"` + strings.Repeat("x", 5000) + `","id":"${tx.id}"}`)})
		}
		o := l.begin(t, "wide", plan(steps...), nil)
		require.Equal(t, contract.TxCommitted, l.end(t, "wide").State)
		_, effects, _ := o.seen()
		require.Len(t, effects, 200)
	})
}

// The first experiment: a reset at any point of a transaction that was undone by approval. Nothing is executed without
// asking, nothing is undone without a new approval.
func TestAResetAtEveryPointOnARealServer(t *testing.T) {
	l := newLive(t, devserver.Options{})
	answer := map[string]func(context.Context) string{
		"execute:b": func(ctx context.Context) string {
			return map[bool]string{true: "lost-after"}[l.owner(ctx).count("execute b") == 0]
		},
		"execute:z": always("refuse"),
	}
	undone := func(t *testing.T, id string) *owner {
		o := l.begin(t, id, chain("a", "b", "z"), answer)
		s := l.until(t, id, inState(contract.TxAwaitingCompensationApproval))
		l.signal(t, id, contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
		require.Equal(t, contract.TxCompensated, l.end(t, id).State)
		return o
	}
	undone(t, "model")
	var points []int64
	for _, event := range l.history(t, "model", "") {
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			points = append(points, event.GetEventId())
		}
	}
	require.Greater(t, len(points), 8)
	var resets atomic.Int32
	t.Cleanup(func() { require.Greater(t, int(resets.Load()), 8) })
	for _, point := range points {
		t.Run(fmt.Sprintf("at event %d", point), func(t *testing.T) {
			t.Parallel()
			id := fmt.Sprintf("reset at %d", point)
			o := undone(t, id)
			log, effects, _ := o.seen()
			require.Empty(t, effects)
			before := len(log)
			finished := l.history(t, id, "")
			first := finished[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
			if !l.reset(t, id, first, point) {
				return
			}
			resets.Add(1)

			// A human approves what is asked now, and says what is true of what nobody can tell.
			approved := -1
			require.Eventually(t, func() bool {
				s := l.snapshot(t, id)
				if s.Run == first && s.State != contract.TxAwaitingCompensationApproval {
					return false // not yet found out
				}
				if s.State == contract.TxAwaitingCompensationApproval {
					if s.Run != first {
						log, _, _ := o.seen()
						approved = len(log)
					}
					l.signal(t, id, contract.SignalApproveCompensation, contract.Decision{By: "carol", Digest: s.Undo.Digest})
				}
				return s.State.Closed()
			}, time.Minute, 50*time.Millisecond)
			receipt := l.end(t, id)
			require.Contains(t, []contract.TxState{contract.TxCompensated, contract.TxFailed}, receipt.State)
			require.NotEqual(t, first, receipt.Run)
			require.Equal(t, first, receipt.Tx)
			log, effects, made := o.seen()
			require.Empty(t, effects)
			for step, n := range made {
				require.LessOrEqual(t, n, 2, step)
			}
			asked := map[string]bool{}
			for i, line := range log[before:] {
				kind, step, _ := strings.Cut(line, " ")
				asked[step] = asked[step] || kind == string(contract.CallInspect)
				require.True(t, asked[step], "%s without asking first: %v", line, log[before:])
				if kind == string(contract.CallCompensate) {
					require.True(t, approved >= 0 && before+i >= approved-1, "undone without a new approval: %v", log[before:])
				}
			}
		})
	}
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

// A server that finds histories long soon, so that the runs of every transaction are short.
func TestShortRunsOnARealServer(t *testing.T) {
	l := newLive(t, shortHistories(t))

	t.Run("a long plan", func(t *testing.T) {
		var ids []string
		for i := range 12 {
			ids = append(ids, fmt.Sprintf("s%d", i))
		}
		o := l.begin(t, "long", chain(ids...), map[string]func(context.Context) string{"execute:s11": always("refuse")})
		s := l.until(t, "long", inState(contract.TxAwaitingCompensationApproval))
		require.NotEqual(t, s.Tx, s.Run)
		l.signal(t, "long", contract.SignalApproveCompensation, contract.Decision{By: "alice"})
		receipt := l.end(t, "long")
		require.Equal(t, contract.TxCompensated, receipt.State)
		_, effects, made := o.seen()
		require.Empty(t, effects)
		require.Len(t, made, 11)
		for step, n := range made {
			require.Equal(t, 1, n, step)
		}
		description, err := l.client.DescribeWorkflow(t.Context(), "long", "")
		require.NoError(t, err)
		plan, _ := description.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(contract.SearchPlan))
		require.Equal(t, "test", plan, "search attributes are carried over")
	})

	t.Run("a storm of signals: none is lost", func(t *testing.T) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		l.begin(t, "storm", chain("a", "z"), map[string]func(context.Context) string{
			"execute:a": func(context.Context) string {
				close(begun)
				<-goOn
				return ""
			},
			"execute:z": always("refuse"),
		})
		<-begun
		const each = 12
		for i := range each {
			l.signal(t, "storm", contract.SignalResume, contract.Decision{By: fmt.Sprintf("resume %d", i)})
			l.signal(t, "storm", contract.SignalApproveStart, contract.Decision{By: fmt.Sprintf("start %d", i)})
		}
		close(goOn)
		s := l.until(t, "storm", func(s contract.Snapshot) bool {
			return s.State == contract.TxAwaitingCompensationApproval && s.Undo != nil
		})
		for i := range each {
			l.signal(t, "storm", contract.SignalRejectStart, contract.Decision{By: fmt.Sprintf("reject %d", i)})
		}
		l.signal(t, "storm", contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
		receipt := l.end(t, "storm")
		require.Equal(t, contract.TxCompensated, receipt.State)
		require.Len(t, receipt.Decisions, 3*each+1, "%v", decisions(receipt))
	})
}

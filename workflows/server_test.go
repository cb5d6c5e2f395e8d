package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
)

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

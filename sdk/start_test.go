package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mcpx-go/mcpx/contract"
)

// together starts n times at once.
func together(t *testing.T, n int, start func() (Started, error)) (count map[How]int, runs map[string]bool) {
	t.Helper()
	count, runs = map[How]int{}, map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	gate := make(chan struct{})
	for range n {
		all.Go(func() {
			<-gate
			started, err := start()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			count[started.How]++
			runs[started.Run] = true
		})
	}
	close(gate)
	all.Wait()
	return count, runs
}

func TestTwentyStartsAtOnceAreOneRun(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	count, seen := together(t, 20, func() (Started, error) { return c.Start(t.Context(), r) })
	require.Equal(t, map[How]int{StartedNew: 1, Attached: 19}, count)
	require.Len(t, seen, 1)
	open, closed := runs(t, c, r.Plan+"/acme")
	require.Equal(t, []int{1, 0}, []int{open, closed})
}

func TestReplayCallsNothingWritesNothingAndNeedsNoWorker(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, `"state": "COMMITTED"`)
	stop := host(t, c, r.TaskQueue)
	first := mustEnd(t, c, r)
	stop()

	before, calls := events(t, c, first.ID), n.total()
	again := mustStart(t, c, r)
	after := n.total()
	require.Equal(t, Replayed, again.How)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, first.Run, again.Run)
	require.Equal(t, contract.TxCommitted, again.Receipt.State)
	require.Equal(t, "ops", again.Receipt.Requester)

	for _, method := range []string{"GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse"} {
		require.Equal(t, 1, after[method]-calls[method], method)
		delete(after, method)
	}
	for method := range after {
		require.Equal(t, calls[method], after[method], method)
	}
	require.Equal(t, before, events(t, c, first.ID))
	open, closed := runs(t, c, first.ID)
	require.Equal(t, []int{0, 1}, []int{open, closed})
}

func TestOutcomeDecidesWhetherAnIntentIsCarriedOutAgain(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	for _, test := range []struct {
		state   contract.TxState
		again   bool
		expired bool
		want    How
	}{
		{state: contract.TxCommitted, want: Replayed},
		{state: contract.TxRetained, want: Replayed},
		{state: contract.TxPartiallyCompensated, want: Replayed},
		{state: contract.TxCompensated, want: Replayed},
		{state: contract.TxRejected, want: Replayed},
		{state: contract.TxFailed, want: StartedNew},
		{state: contract.TxCommitted, again: true, want: StartedNew},
		{state: contract.TxCompensated, again: true, want: StartedNew},
		{state: contract.TxCommitted, expired: true, want: StartedNew},
		{state: contract.TxRejected, expired: true, want: StartedNew},
	} {
		t.Run(fmt.Sprintf("%s again=%t expired=%t", test.state, test.again, test.expired), func(t *testing.T) {
			r := ask(t, fmt.Sprintf(`"state": %q`, test.state))
			host(t, c, r.TaskQueue)
			first := mustEnd(t, c, r)
			r.Again = test.again
			if test.expired {
				short := thePlan(r.Plan)
				short.def.TTL = 1
				r.Manifest = short
			}
			second := mustStart(t, c, r)
			require.Equal(t, test.want, second.How)
			require.Equal(t, test.want == Replayed, second.Run == first.Run)
			require.Equal(t, test.want == Replayed, second.Receipt != nil)
		})
	}
}

func TestFollowUpCountsTheGenerations(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED"`)
	host(t, c, r.TaskQueue)
	for generation := range 3 {
		started := mustEnd(t, c, r)
		last, err := c.current(t.Context(), started.ID)
		require.NoError(t, err)
		require.Equal(t, started.Run, last.run)
		require.Equal(t, generation, last.start.Identity.Generation)
		require.Equal(t, r.Plan, last.start.Plan)
	}
}

func TestRunningTransactionIsAttachedToEvenWhenAskedAgain(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	first := mustStart(t, c, r) // no worker is needed
	for _, again := range []bool{false, true} {
		r.Again = again
		second := mustStart(t, c, r)
		require.Equal(t, Started{ID: first.ID, Run: first.Run, How: Attached}, second)
	}
}

func TestOwnKeyIsTheIntent(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	first := mustStart(t, c, r)
	r.Key = "order-7"
	second := mustStart(t, c, r)
	require.Equal(t, r.Plan+"/order-7", second.ID)
	require.Equal(t, StartedNew, second.How)
	require.NotEqual(t, first.Run, second.Run)
	require.Equal(t, Attached, mustStart(t, c, r).How)
}

func TestSameIntentWithSomethingElseIsAConflict(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	for _, state := range []contract.TxState{contract.TxRunning, contract.TxCommitted, contract.TxCompensated} {
		t.Run(string(state), func(t *testing.T) {
			r := ask(t, fmt.Sprintf(`"state": %q, "size": "small-and-secret", "color": "red"`, state))
			host(t, c, r.TaskQueue)
			first := mustStart(t, c, r)
			if state.Closed() {
				requireClosed(t, c, first.ID)
			}

			other := r
			other.Input = json.RawMessage(fmt.Sprintf(`{"key": "acme", "state": %q, "size": "large-and-secret", "region": "eu"}`, state))
			changed := thePlan(r.Plan)
			changed.def.Digest = "digest-2"
			other.Manifest = changed
			requireState(t, c, first.ID, state)
			before := events(t, c, first.ID)
			_, err := c.Start(t.Context(), other)
			require.ErrorIs(t, err, ErrConflict)
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, first.ID, conflict.ID)
			require.Equal(t, first.Run, conflict.Run)
			require.Equal(t, state, conflict.State)
			var members []string
			for _, d := range conflict.Differences {
				require.NotEqual(t, d.Had, d.Wants)
				members = append(members, d.Member)
			}
			require.Equal(t, []string{"definition", "input.color", "input.region", "input.size"}, members)
			require.NotContains(t, err.Error(), "secret")
			require.Contains(t, err.Error(), "another size")
			require.Contains(t, err.Error(), "without region")
			require.Contains(t, err.Error(), "with color, which is missing now")
			require.Equal(t, before, events(t, c, first.ID))
		})
	}
}

func TestFailureDoesNotHoldTheIntentToWhatFailed(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED"`)
	host(t, c, r.TaskQueue)
	mustEnd(t, c, r)
	changed := ask(t, `"size": "large"`)
	require.Equal(t, StartedNew, mustStart(t, c, changed).How)
	_, err := c.Start(t.Context(), r)
	require.ErrorIs(t, err, ErrConflict, "the new one holds it while it runs")
}

func TestTwentyFollowUpsAtOnceAreOneRun(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	for _, test := range []struct {
		name  string
		state contract.TxState
		again bool
	}{
		{name: "after a failure", state: contract.TxFailed},
		{name: "on purpose", state: contract.TxCommitted, again: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := ask(t, fmt.Sprintf(`"state": %q`, test.state))
			stop := host(t, c, first.TaskQueue)
			started := mustEnd(t, c, first)
			stop()
			r := ask(t, fmt.Sprintf(`"state": %q`, test.state))
			r.Again, r.TaskQueue = test.again, first.TaskQueue+"-idle" // so that the follow-up stays open
			count, seen := together(t, 20, func() (Started, error) { return c.Start(t.Context(), r) })
			require.Equal(t, map[How]int{StartedNew: 1, Attached: 19}, count)
			require.Len(t, seen, 1)
			open, closed := runs(t, c, started.ID)
			require.Equal(t, []int{1, 1}, []int{open, closed})
		})
	}
}

func TestFollowUpThatHasEndedIsNotTakenForANewOne(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "COMMITTED"`)
	host(t, c, r.TaskQueue)
	first := mustEnd(t, c, r)
	l, err := prepare(r)
	require.NoError(t, err)
	last, err := c.current(t.Context(), first.ID)
	require.NoError(t, err)

	run, taken, err := c.follow(t.Context(), l, last)
	require.NoError(t, err)
	require.False(t, taken)
	require.NotEqual(t, first.Run, run)
	requireClosed(t, c, first.ID)

	slow, taken, err := c.follow(t.Context(), l, last)
	require.NoError(t, err)
	require.True(t, taken)
	require.Empty(t, strings.TrimPrefix(slow, run), "the same run")
	_, closed := runs(t, c, first.ID)
	require.Equal(t, 2, closed)
}

func TestFailedPredecessorIsNotFollowedPastASuccess(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED"`)
	host(t, c, r.TaskQueue)
	first := mustEnd(t, c, r)
	l, err := prepare(r)
	require.NoError(t, err)
	stale, err := c.current(t.Context(), first.ID)
	require.NoError(t, err)

	mustEnd(t, c, r)                              // fails, too
	mustEnd(t, c, ask(t, `"state": "COMMITTED"`)) // the third succeeds
	_, taken, err := c.follow(t.Context(), l, stale)
	require.NoError(t, err)
	require.True(t, taken)
	_, closed := runs(t, c, first.ID)
	require.Equal(t, 3, closed)
}

func TestWhatWasEndedFromOutsideIsRefused(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	for _, test := range []struct {
		name, how string
		end       func(t *testing.T, r StartRequest, id string)
	}{
		{"terminated", "stuck", func(t *testing.T, r StartRequest, id string) {
			mustStart(t, c, r)
			require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), id, "", "stuck"))
		}},
		{"failed without a receipt", "broken", func(t *testing.T, r StartRequest, id string) {
			mustStart(t, c, r)
			tell(t, c, id, script{Break: true})
		}},
		{"cancelled", "cancelled", func(t *testing.T, r StartRequest, id string) {
			mustStart(t, c, r)
			requireState(t, c, id, contract.TxRunning)
			require.NoError(t, c.Temporal().CancelWorkflow(t.Context(), id, ""))
		}},
		{"timed out", "time limit", func(t *testing.T, r StartRequest, id string) {
			l, err := prepare(r)
			require.NoError(t, err)
			_, err = c.Temporal().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: id, TaskQueue: r.TaskQueue + "-idle", WorkflowExecutionTimeout: time.Second,
			}, contract.WorkflowTransaction, l.start)
			require.NoError(t, err)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ask(t, "")
			id := r.Plan + "/acme"
			host(t, c, r.TaskQueue)
			test.end(t, r, id)
			requireClosed(t, c, id)
			for _, again := range []bool{false, true} {
				r.Again = again
				_, err := c.Start(t.Context(), r)
				require.ErrorIs(t, err, ErrEffectsMayRemain)
				require.ErrorContains(t, err, test.how)
				require.ErrorContains(t, err, "reset --workflow-id "+id)
			}
			_, err := c.Receipt(t.Context(), id)
			require.ErrorIs(t, err, ErrEffectsMayRemain)
		})
	}
}

func TestWhatCouldNotStartMayBeStartedAgain(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"invalid": true`)
	host(t, c, r.TaskQueue)
	first := mustEnd(t, c, r)
	receipt, err := c.Receipt(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxRejected, receipt.State)

	mended := ask(t, `"state": "COMMITTED"`)
	changed := thePlan(r.Plan)
	changed.def.Digest = "digest-2"
	mended.Manifest = changed
	require.NotEqual(t, first.Run, mustEnd(t, c, mended).Run)
}

func TestStartByHandIsComparedByWhatItSays(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"size": 2`)
	byHand := func(t *testing.T, key string, argument any) {
		t.Helper()
		_, err := c.Temporal().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: r.Plan + "/" + key, TaskQueue: r.TaskQueue,
		}, contract.WorkflowTransaction, argument)
		require.NoError(t, err)
	}
	for _, test := range []struct {
		key      string
		argument any
		want     []string
	}{
		{"same", contract.Start{Plan: r.Plan, Input: json.RawMessage(`{"size": 2.0, "key": "acme"}`)}, nil},
		{"other-input", contract.Start{Plan: r.Plan, Input: json.RawMessage(`{"size": 3, "key": "acme"}`)}, []string{"input.size"}},
		{"other-plan", contract.Start{Plan: "another", Input: r.Input}, []string{"plan"}},
		{"nonsense", "hello", []string{"input"}},
	} {
		t.Run(test.key, func(t *testing.T) {
			byHand(t, test.key, test.argument)
			r := r
			r.Key = test.key
			started, err := c.Start(t.Context(), r)
			if test.want == nil {
				require.NoError(t, err)
				require.Equal(t, Attached, started.How)
				return
			}
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			var members []string
			for _, d := range conflict.Differences {
				members = append(members, d.Member)
			}
			require.Equal(t, test.want, members)
		})
	}
}

func TestWorkflowOfAnotherTypeIsNoTransaction(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	_, err := c.Temporal().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: r.Plan + "/acme", TaskQueue: r.TaskQueue,
	}, "Payroll")
	require.NoError(t, err)
	_, err = c.Start(t.Context(), r)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "Payroll")
}

func TestStartEventIsPlainJSONWithOneArgument(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED", "size": 12345678901234567890`)
	host(t, c, r.TaskQueue)
	id := r.Plan + "/acme"
	for range 2 { // the first run, and one that follows
		mustEnd(t, c, r)
		event, err := c.firstEvent(t.Context(), id, "")
		require.NoError(t, err)
		attributes := event.GetWorkflowExecutionStartedEventAttributes()
		payloads := attributes.GetInput().GetPayloads()
		require.Len(t, payloads, 1)
		require.Equal(t, "json/plain", string(payloads[0].GetMetadata()["encoding"]))
		require.Contains(t, string(payloads[0].GetData()), "12345678901234567890")
		found := attributes.GetSearchAttributes()
		require.Equal(t, "RUNNING", attribute(found, contract.SearchState))
		require.Equal(t, r.Plan, attribute(found, contract.SearchPlan))
		require.Equal(t, []string{"routing/create_route"}, attributeList(found, contract.SearchTools))

		described, err := c.Temporal().DescribeWorkflow(t.Context(), id, "")
		require.NoError(t, err)
		summary, err := described.GetStaticSummary()
		require.NoError(t, err)
		require.Equal(t, r.Plan+": key=acme, size=12345678901234567890, state=FAILED", summary)
	}
}

func TestSealedInputIsAllThatTemporalSees(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED", "token": "hunter2"`)
	host(t, c, r.TaskQueue)
	var sealedFor []string
	r.Seal = func(id string, input json.RawMessage) (json.RawMessage, error) {
		sealedFor = append(sealedFor, id)
		return json.RawMessage(strings.Replace(string(input), `"hunter2"`, `{"$sealed": "xyz"}`, 1)), nil
	}
	id := r.Plan + "/acme"
	for range 2 {
		mustEnd(t, c, r)
		page, err := c.service().GetWorkflowExecutionHistory(t.Context(), &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: c.namespace, Execution: execution(id, ""),
		})
		require.NoError(t, err)
		require.NotContains(t, page.String(), "hunter2")
		require.Contains(t, page.String(), "$sealed")
	}
	require.Equal(t, []string{id, id}, sealedFor)
}

func TestStartNeedsAManifestAndAPlanThatItKnows(t *testing.T) {
	c := New(nil, contract.Namespace)
	_, err := c.Start(t.Context(), StartRequest{Plan: "p"})
	require.ErrorIs(t, err, ErrNoManifest)
	_, err = c.Start(t.Context(), StartRequest{Plan: "p", Input: json.RawMessage(`{"key": "k"}`), Manifest: thePlan("q")})
	require.ErrorContains(t, err, `no plan is called "p"`)
	_, err = c.Start(t.Context(), StartRequest{Plan: "p", Manifest: thePlan("p")})
	require.ErrorContains(t, err, `start plan "p"`)
}

func TestStartSurvivesAShakyConnection(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED"`)
	host(t, c, r.TaskQueue)
	var mu sync.Mutex
	failed := map[string]bool{}
	spoil := func(method string, _ any) error {
		mu.Lock()
		defer mu.Unlock()
		if failed[method] || !strings.Contains(method, "Workflow") || strings.HasPrefix(method, "Poll") || strings.HasPrefix(method, "Respond") {
			return nil
		}
		failed[method] = true
		return unavailable
	}
	for range 2 {
		clear(failed)
		n.spoil.Store(&spoil)
		started := mustStart(t, c, r)
		n.spoil.Store(nil)
		require.Equal(t, StartedNew, started.How)
		requireClosed(t, c, started.ID)
	}
}

func TestCancelledCallerGetsTheContextsError(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Start(ctx, ask(t, ""))
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrUnavailable)
}

func TestStartUsesFailedStatusOnlyAfterFailures(t *testing.T) {
	for _, test := range []struct {
		state contract.TxState
		want  enumspb.WorkflowIdReusePolicy
	}{
		{contract.TxCommitted, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE},
		{contract.TxRetained, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE},
		{contract.TxFailed, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY},
		{contract.TxCompensated, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY},
		{contract.TxRejected, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY},
	} {
		last := &record{closing: closing{ending: final, receipt: &contract.Receipt{Snapshot: contract.Snapshot{State: test.state}}}}
		require.Equal(t, test.want, reusePolicy(last), test.state)
	}
}

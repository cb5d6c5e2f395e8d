package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mcpx-go/mcpx/contract"
)

func TestRunningTransactionIsAskedThroughAWorker(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	started := mustStart(t, c, r)
	snapshot, err := c.Snapshot(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxRunning, snapshot.State)
	require.Equal(t, started.Run, snapshot.Run)
	require.Len(t, snapshot.Steps, 1)
	require.Empty(t, snapshot.Notes)
	_, err = c.Receipt(t.Context(), started.ID)
	require.ErrorIs(t, err, ErrNotClosed)
	require.ErrorContains(t, err, "mcpx status "+started.ID)
}

func TestClosedTransactionNeedsNoWorker(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	for _, state := range []contract.TxState{contract.TxCommitted, contract.TxFailed} {
		t.Run(string(state), func(t *testing.T) {
			r := ask(t, fmt.Sprintf(`"state": %q`, state))
			stop := host(t, c, r.TaskQueue)
			started := mustEnd(t, c, r)
			stop()
			asked := n.total()["QueryWorkflow"]
			snapshot, err := c.Snapshot(t.Context(), started.ID)
			require.NoError(t, err)
			require.Equal(t, state, snapshot.State)
			require.Len(t, snapshot.Steps, 1)
			receipt, err := c.Receipt(t.Context(), started.ID)
			require.NoError(t, err)
			require.Equal(t, snapshot, receipt.Snapshot)
			require.Equal(t, asked, n.total()["QueryWorkflow"])
		})
	}
}

func TestTransactionThatNeverRanIsShownFromItsStart(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"size": 12345678901234567890`)
	c.queryWait = tick * 20
	started := mustStart(t, c, r)
	snapshot, err := c.Snapshot(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxRunning, snapshot.State)
	require.Equal(t, r.Plan, snapshot.Plan)
	require.Equal(t, "ops", snapshot.Requester)
	require.Equal(t, started.Run, snapshot.Run)
	require.Equal(t, "digest-1", snapshot.Definition)
	require.JSONEq(t, string(r.Input), string(snapshot.Input))
	require.Contains(t, string(snapshot.Input), "12345678901234567890")
	require.Equal(t, "nothing has run yet", snapshot.Reason)
	require.Contains(t, snapshot.Waiting, "mcpx worker")
	require.Contains(t, snapshot.Waiting, r.TaskQueue)
	require.Len(t, snapshot.Notes, 1)
	require.Contains(t, snapshot.Notes[0], "no worker")
	require.False(t, snapshot.Started.IsZero())
}

func TestWithoutAWorkerTheIndexKnowsTheState(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "AWAITING_RESOLUTION"`)
	stop := host(t, c, r.TaskQueue)
	started := mustStart(t, c, r)
	requireState(t, c, started.ID, contract.TxAwaitingResolution)
	stop()
	c.queryWait = tick * 20
	var snapshot contract.Snapshot
	require.Eventually(t, func() bool {
		var err error
		snapshot, err = c.Snapshot(t.Context(), started.ID)
		return err == nil && len(snapshot.Notes) > 0
	}, patience, tick)
	require.Equal(t, contract.TxAwaitingResolution, snapshot.State)
	require.Empty(t, snapshot.Reason, "it has run")
}

func TestWhatWasEndedFromOutsideIsShownAsTerminated(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	stop := host(t, c, r.TaskQueue)
	started := mustStart(t, c, r)
	requireState(t, c, started.ID, contract.TxRunning)
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), started.ID, "", "stuck"))

	snapshot, err := c.Snapshot(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxTerminated, snapshot.State)
	require.Contains(t, snapshot.Reason, "terminated by ")
	require.Contains(t, snapshot.Reason, "stuck")
	require.False(t, snapshot.Ended.IsZero())
	require.Len(t, snapshot.Steps, 1, "a worker tells how far it came")
	require.Contains(t, strings.Join(snapshot.Notes, "\n"), "reset --workflow-id "+started.ID)

	stop()
	c.queryWait = tick * 20
	require.Eventually(t, func() bool {
		snapshot, err = c.Snapshot(t.Context(), started.ID)
		require.NoError(t, err)
		return len(snapshot.Steps) == 0
	}, patience, tick)
	require.Equal(t, contract.TxTerminated, snapshot.State)
	require.Contains(t, snapshot.Reason, "stuck")
	require.Len(t, snapshot.Notes, 2)
}

func TestUnknownTransactionIsNotFound(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	_, err := c.Snapshot(t.Context(), "no-such/transaction")
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "no-such/transaction")
	require.ErrorContains(t, err, "mcpx list")
	_, err = c.Receipt(t.Context(), "no-such/transaction")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = c.Pending(t.Context(), "no-such/transaction")
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, c.Watch(t.Context(), "no-such/transaction", func(contract.Snapshot) error { return nil }), ErrNotFound)
	_, err = c.Abort(t.Context(), "no-such/transaction", contract.Decision{})
	require.ErrorIs(t, err, ErrNotFound)
}

func TestLastEventTellsHowARunEnded(t *testing.T) {
	details := func(v any) *commonpb.Payloads {
		payloads, err := encode(v)
		require.NoError(t, err)
		return payloads
	}
	receipt := func(state contract.TxState) contract.Receipt {
		return contract.Receipt{Format: contract.ReceiptFormat, Snapshot: contract.Snapshot{State: state}}
	}
	completed := func(v any) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
				WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{Result: details(v)},
			},
		}
	}
	failed := func(kind string, v ...any) *historypb.HistoryEvent {
		info := &failurepb.ApplicationFailureInfo{Type: kind}
		for _, one := range v {
			info.Details = details(one)
		}
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
				WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{
					Message: "why", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: info},
				}},
			},
		}
	}
	other := receipt(contract.TxCommitted)
	other.Format = "invoice/1"
	later := receipt(contract.TxCommitted)
	later.Format = "mcpx-receipt/2"
	for _, test := range []struct {
		name  string
		event *historypb.HistoryEvent
		want  ending
	}{
		{"a receipt", completed(receipt(contract.TxCommitted)), final},
		{"a receipt of a later version", completed(later), final},
		{"a receipt in the details", failed("COMPENSATED", receipt(contract.TxCompensated)), final},
		{"could not start", failed(contract.ErrorStart, receipt(contract.TxRejected)), invalid},
		{"could not start, and nothing proves it", failed(contract.ErrorStart), cut},
		{"no result", completed(nil), cut},
		{"another format", completed(other), cut},
		{"no receipt at all", completed("done"), cut},
		{"a state that is not final", completed(receipt(contract.TxRunning)), cut},
		{"a state that nobody knows", completed(receipt("DONE")), cut},
		{"a failure of another kind", failed("Oops"), cut},
		{"terminated", &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED}, cut},
		{"timed out", &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT}, cut},
		{"cancelled", &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED}, cut},
		{"continued", &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW}, continued},
		{"asked to cancel", &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED}, open},
		{"an activity", &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED}, open},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.event.EventTime = timestamppb.Now()
			end := closed(test.event)
			require.Equal(t, test.want, end.ending)
			require.Equal(t, test.want == final || test.want == invalid, end.receipt != nil)
			require.Equal(t, test.want == cut, end.how != "")
		})
	}
}

func TestContinuedRunIsShownFromWhatItCarries(t *testing.T) {
	r := record{id: "p/k", run: "run-2", original: "run-2", first: "run-1", readable: true, start: contract.Start{
		Plan: "p", Input: json.RawMessage(`{"a": 1}`),
		Carried: &contract.Carried{
			Tx: "run-1", State: contract.TxCompensating, Transitions: 7, Requester: "ops", Notes: []string{"noted"},
			Resolved: contract.Resolved{Definition: contract.Definition{Digest: "d"}, Input: json.RawMessage(`{"a": 1, "b": 2}`)},
			Steps:    []contract.CarriedStep{{StepSnapshot: contract.StepSnapshot{ID: "route", State: contract.StepCommitted}}},
		},
	}}
	snapshot := r.snapshot()
	require.Equal(t, "run-1", snapshot.Tx)
	require.Equal(t, contract.TxCompensating, snapshot.State)
	require.Equal(t, 7, snapshot.Transitions)
	require.JSONEq(t, `{"a": 1, "b": 2}`, string(snapshot.Input))
	require.Equal(t, "d", snapshot.Definition)
	require.Equal(t, []string{"noted"}, snapshot.Notes)
	require.Len(t, snapshot.Steps, 1)
}

package sdk

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// signalScript tells a scripted transaction what to do next.
const signalScript = "script"

// script is what a scripted transaction does: it enters State, and ends if that is a final one. It begins with what
// the members of its input say, and goes on with what signals say.
type script struct {
	State contract.TxState `json:"state,omitempty"`
	// Invalid fails as a transaction that cannot start; Break with an error that is no receipt.
	Invalid bool `json:"invalid,omitempty"`
	Break   bool `json:"break,omitempty"`
	// Leave continues as a new run.
	Leave bool `json:"leave,omitempty"`
	// Call dispatches a call to this queue.
	Call string `json:"call,omitempty"`
}

// scripted stands in for the workflow Transaction: its names, its query, its decisions, its ends.
func scripted(ctx workflow.Context, start contract.Start) (*contract.Receipt, error) {
	info := workflow.GetInfo(ctx)
	now := contract.Snapshot{
		ID: info.WorkflowExecution.ID, Run: info.OriginalRunID, Tx: info.FirstRunID,
		Plan: start.Plan, State: contract.TxRunning, Requester: start.Requester, Input: start.Input, Started: info.WorkflowStartTime,
		Steps: []contract.StepSnapshot{{ID: "route", Tool: "routing/create_route", State: contract.StepExecuting, Attempts: 1}},
	}
	if start.Carried != nil {
		now.Tx, now.State, now.Transitions = start.Carried.Tx, start.Carried.State, start.Carried.Transitions
	}
	if err := workflow.SetQueryHandler(ctx, contract.QuerySnapshot, func() (contract.Snapshot, error) { return now, nil }); err != nil {
		return nil, err
	}
	if err := listen(ctx, &now); err != nil {
		return nil, err
	}

	var next script
	if start.Carried == nil {
		if err := json.Unmarshal(start.Input, &next); err != nil {
			return nil, err
		}
	}
	commands := workflow.GetSignalChannel(ctx, signalScript)
	for {
		if next.State != "" && next.State != now.State {
			now.State = next.State
			now.Transitions++
			index(ctx, now.State)
		}
		receipt := &contract.Receipt{Format: contract.ReceiptFormat, Snapshot: now}
		switch {
		case next.Leave:
			start.Carried = &contract.Carried{Tx: now.Tx, State: now.State, Transitions: now.Transitions, Started: now.Started}
			return nil, workflow.NewContinueAsNewError(ctx, contract.WorkflowTransaction, start)
		case next.Break:
			return nil, errors.New("broken")
		case next.Invalid:
			receipt.State = contract.TxRejected
			return nil, failure("the plan is unknown", contract.ErrorStart, receipt)
		case now.State.Closed() && now.State.EffectsRemain():
			return receipt, nil
		case now.State.Closed():
			return nil, failure(string(now.State), string(now.State), receipt)
		case next.Call != "":
			workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				TaskQueue: next.Call, StartToCloseTimeout: time.Minute,
			}), contract.ActivityExecute)
		}
		next = script{}
		workflow.NewSelector(ctx).
			AddReceive(commands, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &next) }).
			AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).
			Select(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func failure(message, kind string, receipt *contract.Receipt) error {
	return temporal.NewApplicationErrorWithOptions(message, kind, temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{receipt}, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// index keeps the search attribute of the state, where the transaction was started with one.
func index(ctx workflow.Context, state contract.TxState) {
	if current, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(searchState); ok && current != string(state) {
		_ = workflow.UpsertTypedSearchAttributes(ctx, searchState.ValueSet(string(state)))
	}
}

// listen records decisions. It accepts them, but for those by "nobody-important"; those by "sleeper" it never answers.
func listen(ctx workflow.Context, now *contract.Snapshot) error {
	judge := func(signal string, d contract.Decision) (contract.Judged, error) {
		judged := contract.Judged{Signal: signal, Decision: d, Accepted: true, Why: "noted"}
		if d.By == "nobody-important" {
			return judged, errors.New("nobody important may not decide")
		}
		now.Decisions = append(now.Decisions, judged)
		now.Transitions++
		return judged, nil
	}
	for _, s := range contract.Signals {
		name := s.Name
		channel := workflow.GetSignalChannel(ctx, name)
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				var d contract.Decision
				channel.Receive(ctx, &d)
				_, _ = judge(name, d)
			}
		})
		err := workflow.SetUpdateHandlerWithOptions(ctx, name,
			func(ctx workflow.Context, d contract.Decision) (contract.Judged, error) {
				if d.By == "sleeper" {
					_ = workflow.Await(ctx, func() bool { return false })
				}
				if d.Reason == "changed its mind" {
					return contract.Judged{}, errors.New("it was approved already")
				}
				return judge(name, d)
			},
			workflow.UpdateHandlerOptions{Validator: func(d contract.Decision) error {
				if strings.HasPrefix(d.Digest, "stale") {
					return errors.New("it names another plan")
				}
				return nil
			}})
		if err != nil {
			return err
		}
	}
	return nil
}

// tell makes a scripted transaction go on.
func tell(t *testing.T, c *Client, id string, next script) {
	t.Helper()
	require.NoError(t, c.Temporal().SignalWorkflow(t.Context(), id, "", signalScript, next))
}

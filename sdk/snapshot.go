package sdk

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/mcpx-go/mcpx/contract"
)

// maxInput is the size in bytes up to which an input read from the history is shown whole.
const maxInput = 64 << 10

// Snapshot is a transaction as it stands. A closed one is read from its receipt, a running one is asked through a
// worker. Where no worker answers in time, the snapshot holds what Temporal itself knows, and a note that says so.
//
// A transaction that was ended from outside is shown as TERMINATED, with its steps as they stood where a worker can
// tell. It returns ErrNotFound where there is none.
func (c *Client) Snapshot(ctx context.Context, id string) (contract.Snapshot, error) {
	snapshot, _, err := c.snapshot(ctx, id, "", c.queryWait)
	if err != nil {
		return contract.Snapshot{}, c.explain(id, fmt.Errorf("look at %s: %w", id, err))
	}
	return snapshot, nil
}

// Receipt is what remains of a closed transaction. It returns ErrNotFound, ErrNotClosed, or ErrEffectsMayRemain where
// the transaction was ended from outside, and so has none.
func (c *Client) Receipt(ctx context.Context, id string) (contract.Receipt, error) {
	last, err := c.current(ctx, id)
	if err != nil {
		return contract.Receipt{}, c.explain(id, fmt.Errorf("receipt of %s: %w", id, err))
	}
	switch {
	case last.receipt != nil:
		return *last.receipt, nil
	case last.ending == cut:
		return contract.Receipt{}, &EndedError{ID: id, Run: last.run, How: last.how, At: last.at}
	default:
		return contract.Receipt{}, fmt.Errorf("receipt of %s: %w: wait for it with `mcpx status %s --watch`", id, ErrNotClosed, id)
	}
}

// snapshot looks at one run, at the newest one where run is "", and at the one that goes on where it was continued. A
// worker may take the given time to answer. whole: it is as good as it gets.
func (c *Client) snapshot(ctx context.Context, id, run string, patience time.Duration) (snapshot contract.Snapshot, whole bool, err error) {
	for {
		end, err := c.closing(ctx, id, run)
		if err != nil {
			return snapshot, false, err
		}
		switch end.ending {
		case open:
			if snapshot, err = c.query(ctx, id, run, patience); err == nil {
				return snapshot, true, nil
			} else if ctx.Err() != nil {
				return snapshot, false, ctx.Err()
			}
			return c.fromHistory(ctx, id, run, err)
		case continued:
			run = end.next
		case cut:
			if run != "" {
				return c.outlived(ctx, id, run, end, patience)
			}
			described, err := c.describe(ctx, id, "")
			if err != nil {
				return snapshot, false, err
			}
			run = described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		default:
			return end.receipt.Snapshot, true, nil
		}
	}
}

// query asks a worker for the snapshot.
func (c *Client) query(ctx context.Context, id, run string, patience time.Duration) (snapshot contract.Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := c.temporal.QueryWorkflow(ctx, id, run, contract.QuerySnapshot)
	if err != nil {
		return snapshot, err
	}
	return snapshot, answer.Get(&snapshot)
}

// outlived is a run that was ended from outside: as it stood then, if a worker can tell.
func (c *Client) outlived(ctx context.Context, id, run string, end closing, patience time.Duration) (snapshot contract.Snapshot, whole bool, err error) {
	if snapshot, err = c.query(ctx, id, run, patience); err == nil {
		whole = true
	} else if snapshot, _, err = c.fromHistory(ctx, id, run, err); err != nil {
		return snapshot, false, err
	}
	snapshot.State, snapshot.Reason, snapshot.Waiting = contract.TxTerminated, end.how, ""
	snapshot.Ended = end.at
	snapshot.Notes = append(snapshot.Notes,
		fmt.Sprintf("ended from outside: effects of it may remain; `temporal workflow reset --workflow-id %s --type LastWorkflowTask` takes it over and asks their owners", id))
	return snapshot, whole, nil
}

// fromHistory is what Temporal itself knows of a run whose workers do not answer, for the given reason.
func (c *Client) fromHistory(ctx context.Context, id, run string, silence error) (snapshot contract.Snapshot, whole bool, err error) {
	described, err := c.describe(ctx, id, run)
	if err != nil {
		return snapshot, false, err
	}
	info := described.GetWorkflowExecutionInfo()
	run = info.GetExecution().GetRunId()
	events, more, err := c.events(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{Execution: execution(id, run), MaximumPageSize: 100})
	if err != nil {
		return snapshot, false, err
	}
	r := record{id: id, run: run}
	if err := r.started(events[0]); err != nil {
		return snapshot, false, err
	}
	ran := len(more) > 0
	for _, event := range events {
		ran = ran || event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
	}
	snapshot = r.snapshot()
	if state := contract.TxState(attribute(info.GetSearchAttributes(), contract.SearchState)); state.Known() && !state.Closed() {
		snapshot.State = state
	}
	queue := described.GetExecutionConfig().GetTaskQueue().GetName()
	if !ran {
		snapshot.Reason = "nothing has run yet"
	}
	if isOpen(info.GetStatus()) {
		snapshot.Waiting = "a worker on task queue " + queue + ": start one with `mcpx worker`"
	}
	snapshot.Notes = append(snapshot.Notes, fmt.Sprintf("no worker answers on task queue %s (%s): this is what Temporal itself knows", queue, silence))
	return snapshot, false, nil
}

// snapshot is what the start of a run says.
func (r *record) snapshot() contract.Snapshot {
	snapshot := contract.Snapshot{
		ID: r.id, Run: r.original, Tx: r.first, Plan: r.start.Plan, State: contract.TxRunning,
		Requester: r.start.Requester, Input: contract.Keep(r.input(), nil, maxInput).Raw(), Started: r.began,
	}
	if identity := r.start.Identity; identity != nil {
		snapshot.Definition = identity.Definition
	}
	if !r.readable {
		snapshot.Notes = append(snapshot.Notes, "started by hand with something that is no start of a transaction")
	}
	if carried := r.start.Carried; carried != nil {
		snapshot.Tx, snapshot.Started, snapshot.State = carried.Tx, carried.Started, carried.State
		snapshot.Requester, snapshot.Definition = carried.Requester, carried.Resolved.Definition.Digest
		snapshot.Undo, snapshot.Decisions, snapshot.Transitions = carried.Undo, carried.Decisions, carried.Transitions
		snapshot.Notes = append(snapshot.Notes, carried.Notes...)
		for _, step := range carried.Steps {
			snapshot.Steps = append(snapshot.Steps, step.StepSnapshot)
		}
	}
	return snapshot
}

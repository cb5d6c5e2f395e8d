package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/mcpx-go/mcpx/contract"
)

// Sent is what Judged.Why says of a decision that was sent without an answer: no worker was there to judge it. It is
// kept, and judged by the next one. Whether it counts is seen in the snapshot's decisions.
const Sent = "sent; a worker will judge it"

// errUnanswered: an update could not be made, or got no answer. The signal still can.
var errUnanswered = errors.New("no worker has judged it")

// ApproveStart lets a transaction start that waits for approval.
func (c *Client) ApproveStart(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	return c.Decide(ctx, id, contract.SignalApproveStart, d)
}

// RejectStart declines the start of a transaction that waits for approval.
func (c *Client) RejectStart(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	return c.Decide(ctx, id, contract.SignalRejectStart, d)
}

// Approve approves the published undo plan. Name its digest: without one, the approval counts only for the first plan.
func (c *Client) Approve(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	return c.Decide(ctx, id, contract.SignalApproveCompensation, d)
}

// Reject declines the rollback: the effects stay.
func (c *Client) Reject(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	return c.Decide(ctx, id, contract.SignalRejectCompensation, d)
}

// Resume tries the failed steps again instead of rolling back. Where the decision names no run, it is about the
// transaction as it stands now.
func (c *Client) Resume(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	c.pin(ctx, id, &d)
	return c.Decide(ctx, id, contract.SignalResume, d)
}

// Resolve says what became of a step: d.Step and d.As. Where the decision names no run and no attempt, it is about the
// step as it stands now.
func (c *Client) Resolve(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	c.pin(ctx, id, &d)
	return c.Decide(ctx, id, contract.SignalResolveStep, d)
}

// Abort starts nothing new, lets what is in flight settle, and then asks about the rollback.
func (c *Client) Abort(ctx context.Context, id string, d contract.Decision) (contract.Judged, error) {
	return c.Decide(ctx, id, contract.SignalAbort, d)
}

// pin makes a decision name the run, and the attempt of its step or the undo plan, that it is about, so that it cannot be taken for one
// about what comes later. Where nobody can tell, it stays as it is.
func (c *Client) pin(ctx context.Context, id string, d *contract.Decision) {
	if d.Run != "" {
		return
	}
	snapshot, whole, err := c.snapshot(ctx, id, "", c.queryWait)
	if err != nil || !whole || snapshot.State.Closed() {
		return
	}
	d.Run = snapshot.Run
	if step, ok := snapshot.Step(d.Step); ok && d.Attempt == 0 {
		d.Attempt = step.Attempts
	}
	if snapshot.Undo != nil && d.Step == "" && d.Digest == "" {
		d.Digest = snapshot.Undo.Digest
	}
}

// Decide carries a human's decision to a transaction: signal is one of the contract.Signal names. It is made as an
// update, which a worker judges and answers. Where no worker answers it is sent as a signal, which is kept until one
// does; the answer then says so (Sent, and not Accepted). A decision that arrives twice counts once.
//
// A decision that does not count returns ErrNotAccepted (a NotAcceptedError with the reason), as does any decision
// about a closed transaction.
func (c *Client) Decide(ctx context.Context, id, signal string, d contract.Decision) (contract.Judged, error) {
	if err := checkDecision(id, signal, d); err != nil {
		return contract.Judged{}, err
	}
	described, err := c.describe(ctx, id, "")
	if err != nil {
		return contract.Judged{}, c.explain(id, fmt.Errorf("%s of %s: %w", signal, id, err))
	}
	if !isOpen(described.GetWorkflowExecutionInfo().GetStatus()) {
		return contract.Judged{}, c.tooLate(ctx, id, signal)
	}
	if c.polled(ctx, described.GetExecutionConfig().GetTaskQueue().GetName()) {
		judged, err := c.update(ctx, id, signal, d)
		switch {
		case err == nil, errors.Is(err, ErrNotAccepted):
			return judged, err
		case isNotFound(err):
			return contract.Judged{}, c.tooLate(ctx, id, signal)
		case !errors.Is(err, errUnanswered):
			return contract.Judged{}, c.explain(id, fmt.Errorf("%s of %s: %w", signal, id, err))
		case ctx.Err() != nil:
			return contract.Judged{}, fmt.Errorf("%s of %s: %w", signal, id, ctx.Err())
		}
	}
	if err := c.temporal.SignalWorkflow(ctx, id, "", signal, d); err != nil {
		if isNotFound(err) {
			return contract.Judged{}, c.tooLate(ctx, id, signal)
		}
		return contract.Judged{}, c.explain(id, fmt.Errorf("%s of %s: %w", signal, id, err))
	}
	return contract.Judged{Signal: signal, Decision: d, At: time.Now().UTC(), Why: Sent}, nil
}

// checkDecision refuses what no worker would accept: it saves a way that may have no answer.
func checkDecision(id, signal string, d contract.Decision) error {
	refuse := func(format string, args ...any) error {
		return &NotAcceptedError{ID: id, Signal: signal, Why: fmt.Sprintf(format, args...)}
	}
	var signals []string
	for _, s := range contract.Signals {
		signals = append(signals, s.Name)
	}
	switch {
	case !slices.Contains(signals, signal):
		return refuse("there is no such signal: it is one of %s", strings.Join(signals, ", "))
	case signal != contract.SignalAbort && strings.TrimSpace(d.By) == "":
		return refuse("nobody is named: say who decides")
	case signal != contract.SignalResolveStep:
		return nil
	case d.Step == "":
		return refuse("it names no step")
	case !slices.Contains(contract.Resolutions, d.As):
		return refuse("say what became of step %s: one of %v, not %q", d.Step, contract.Resolutions, d.As)
	}
	return nil
}

// tooLate is the error for a decision about a transaction that is closed.
func (c *Client) tooLate(ctx context.Context, id, signal string) error {
	last, err := c.current(ctx, id)
	if err != nil {
		return c.explain(id, fmt.Errorf("%s of %s: %w", signal, id, err))
	}
	return &NotAcceptedError{ID: id, Signal: signal, Why: fmt.Sprintf("the transaction is closed: %s", last.state())}
}

// update makes a decision as an update. It returns errUnanswered where the server cannot take one now, or no worker
// answers in time.
func (c *Client) update(ctx context.Context, id, signal string, d contract.Decision) (contract.Judged, error) {
	args, err := encode(d)
	if err != nil {
		return contract.Judged{}, err
	}
	request := &workflowservice.UpdateWorkflowExecutionRequest{
		Namespace:         c.namespace,
		WorkflowExecution: execution(id, ""),
		WaitPolicy:        &updatepb.WaitPolicy{LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
		Request: &updatepb.Request{
			Meta:  &updatepb.Meta{UpdateId: uuid.NewString(), Identity: c.place.identity},
			Input: &updatepb.Input{Name: signal, Args: args},
		},
	}
	ctx, cancel := context.WithTimeout(ctx, c.updateWait)
	defer cancel()
	for {
		response, err := c.service().UpdateWorkflowExecution(ctx, request)
		switch code(err) {
		case codes.OK:
		case codes.Unavailable, codes.Aborted: // as while the transaction continues as a new run
			if wait(ctx, firstPause) == nil {
				continue
			}
			return contract.Judged{}, fmt.Errorf("%w: %w", errUnanswered, err)
		case codes.ResourceExhausted, codes.FailedPrecondition, codes.DeadlineExceeded, codes.Canceled, codes.Unimplemented:
			return contract.Judged{}, fmt.Errorf("%w: %w", errUnanswered, err)
		default:
			return contract.Judged{}, err
		}
		switch outcome := response.GetOutcome().GetValue().(type) {
		case *updatepb.Outcome_Success:
			return judgedOf(outcome.Success)
		case *updatepb.Outcome_Failure:
			return contract.Judged{}, &NotAcceptedError{ID: id, Signal: signal, Why: rootMessage(outcome.Failure)}
		}
	}
}

func judgedOf(success *commonpb.Payloads) (judged contract.Judged, err error) {
	if err := codec.FromPayloads(success, &judged); err != nil {
		return judged, fmt.Errorf("the worker's answer cannot be read: %w", err)
	}
	return judged, nil
}

// rootMessage is what a failure is about.
func rootMessage(failure *failurepb.Failure) string {
	for failure.GetCause() != nil {
		failure = failure.GetCause()
	}
	return failure.GetMessage()
}

package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// undoing is how far the compensation of a step has got.
type undoing struct {
	sent int // compensations handed to a worker since a human last allowed them
	idle int // and since the last of them, those that provably were not executed
	// horizon is when the owner has settled after the last of them, zero if there was none; acknowledged: it was.
	horizon      time.Time
	acknowledged bool
	// open: the owner has taken it and not finished it. It may take effect at any time, so it is not sent again.
	open bool
}

// again is a compensation that a human has allowed again.
func (u undoing) again() undoing {
	return undoing{horizon: u.horizon, acknowledged: u.acknowledged}
}

// undoStep undoes one step: look, compensate, look. A compensator's success proves nothing, only the look does. False:
// what would be done now is not what was approved.
func (t *transaction) undoStep(ctx workflow.Context, s *step, approved contract.Undo) bool {
	before := s.effect()
	t.become(s, contract.StepCompensating, "looking whether it is still there")
	args, err := t.args(s)
	if err != nil {
		t.become(s, contract.StepCompensationFailed, "it cannot be asked about: %v", err)
		return true
	}
	look := t.lookUndone(ctx, s, args)
	for !t.mustLeave() {
		if t.undoSettled(s, look) {
			return true
		}
		undoArgs, err := t.undoArgs(s, look)
		switch {
		case t.tooOld(s):
			t.become(s, before, "it could be undone only within %s: a new plan is needed", s.tool.Compensate.Within)
			return false
		case err != nil || !approvedArgs(approved, undoArgs):
			t.become(s, before, "what is there now is not what was approved: a new plan is needed")
			return false
		case s.undoing.open:
			t.become(s, contract.StepCompensationFailed, "still present, and the owner has not finished the compensation that it took")
			return true
		case s.undoing.sent > s.tool.Compensate.Retries:
			t.become(s, contract.StepCompensationFailed, "still present after %d compensations", s.undoing.sent)
			return true
		case !t.sendUndo(ctx, s, undoArgs):
			return true
		}
		look = t.lookUndone(ctx, s, args)
	}
	return true
}

// effect is the state of a step before it was being undone.
func (s *step) effect() contract.StepState {
	switch {
	case s.state != contract.StepCompensating:
		return s.state
	case s.proof == contract.ProofAnswer || s.proof == contract.ProofHuman:
		return contract.StepCommitted
	}
	return contract.StepRecovered
}

// undoSettled ends the compensation of a step where the look decides it.
func (t *transaction) undoSettled(s *step, look contract.Look) bool {
	switch {
	case look.Verdict == contract.Absent && s.undos == 0:
		t.become(s, contract.StepCompensated, "gone already, verified absent by %s", s.tool.Inspect.Tool)
	case look.Verdict == contract.Absent:
		t.become(s, contract.StepCompensated, "undone, verified absent by %s", s.tool.Inspect.Tool)
	case look.Verdict == contract.Inconclusive:
		t.become(s, contract.StepCompensationFailed, "the owner cannot tell whether it is still there, or whether it is ours: %s", look.Why)
	case t.ours(s) == "":
		t.become(s, contract.StepCompensationFailed, "what is there is no longer recognisable as ours")
	default:
		return false
	}
	return true
}

// sendUndo sends the compensation once. False: it was not executed too often, and the step is COMPENSATION_FAILED.
func (t *transaction) sendUndo(ctx workflow.Context, s *step, args json.RawMessage) bool {
	undo := s.tool.Compensate
	s.undos++
	t.become(s, contract.StepCompensating, "compensating with %s", undo.Tool)
	out := t.callCompensate(ctx, s, args)
	t.record(s, out.Evidence)
	switch out.Kind {
	case contract.Reset:
		s.undos--
		t.rewind()
		return true
	case contract.NotExecuted:
		s.undos--
		s.undoing.idle++
		if t.mustLeave() {
			return true
		}
		if s.undoing.idle >= idleTries {
			s.undoing.idle = 0
			t.become(s, contract.StepCompensationFailed, "the compensation was not executed after %d tries: %s", idleTries, out.Why)
			return false
		}
		t.become(s, contract.StepCompensating, "compensation not executed: %s", out.Why)
		t.sleepUntil(ctx, workflow.Now(t.ctx).Add(max(idleWait(s.undoing.idle), out.RetryAfter.Std())),
			s.def.ID+": compensation not executed, trying again", never)
		return true
	}
	settled := workflow.Now(t.ctx)
	if out.Kind != contract.Acknowledged && out.Kind != contract.Refused && !out.Answered {
		settled = latest(settled, out.WriteDeadline)
	}
	s.undoing.sent++
	s.undoing.idle = 0
	s.undoing.horizon = settled.Add(undo.Settle.Std())
	s.undoing.acknowledged, s.undoing.open = out.Kind == contract.Acknowledged, out.Open
	why := out.Why
	if s.undoing.acknowledged {
		why = "acknowledged"
	}
	t.become(s, contract.StepCompensating, "%s: verifying that it is absent", why)
	return true
}

// lookUndone looks until what it sees counts. Before anything was sent: an effect that the inspector never showed
// counts as gone after two looks. After an acknowledgement: absence counts at once, presence when the owner has
// settled. Else both count only when the call can no longer write, and the owner has settled.
func (t *transaction) lookUndone(ctx workflow.Context, s *step, args json.RawMessage) contract.Look {
	asked := workflow.Now(t.ctx)
	look := t.inspect(ctx, s, args)
	absent := func() bool { return look.Verdict == contract.Absent }
	switch {
	case t.mustLeave() || look.Verdict == contract.Inconclusive:
		return look
	case s.undoing.horizon.IsZero():
		if absent() && s.effectUnseen() {
			return t.lookAt(ctx, s, args, workflow.Now(t.ctx).Add(s.tool.Settle.Std()), "absent, looking again")
		}
	case !asked.Before(s.undoing.horizon):
	case !s.undoing.acknowledged:
		return t.lookAt(ctx, s, args, s.undoing.horizon, "letting "+s.tool.Compensate.Server+" settle")
	default:
		for wait := s.tool.Compensate.Settle.Std() / 8; look.Verdict == contract.Present && !t.mustLeave(); wait *= 2 {
			now := workflow.Now(t.ctx)
			if !now.Before(s.undoing.horizon) {
				break
			}
			next := now.Add(max(wait, 10*time.Millisecond))
			if next.After(s.undoing.horizon) {
				next = s.undoing.horizon
			}
			look = t.lookAt(ctx, s, args, next, "still there, looking again")
		}
	}
	return look
}

// effectUnseen tells whether nobody but the owner's answer, or a human, said that the effect is there.
func (s *step) effectUnseen() bool {
	return s.proof == contract.ProofAnswer || s.proof == contract.ProofHuman
}

// lookAt looks at a moment.
func (t *transaction) lookAt(ctx workflow.Context, s *step, args json.RawMessage, moment time.Time, summary string) contract.Look {
	t.sleepUntil(ctx, moment, s.def.ID+": "+summary, never)
	return t.inspect(ctx, s, args)
}

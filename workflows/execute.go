package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// A call that provably was not executed is tried again, with a budget of its own: the server may just be starting.
const (
	idleTries   = 8
	idleBackoff = 250 * time.Millisecond
	idleLongest = 10 * time.Second
)

// execute dispatches a step until its outcome is known or it has to be left. A call is sent again only where it
// provably was not executed, where its absence has been proven, or where its contract says that it is idempotent.
func (t *transaction) execute(ctx workflow.Context, s *step) {
	for {
		if !t.gate(ctx, s) {
			t.notStarted(s)
			return
		}
		if late := t.tooLate(s); late != "" {
			t.fail(s, late)
			return
		}
		s.attempts++
		args, err := t.args(s)
		if err != nil {
			s.attempts--
			t.become(s, contract.StepExecuting, "filling its arguments")
			t.fail(s, "its arguments cannot be filled: "+err.Error())
			return
		}
		if s.suspect {
			// Another run of this transaction may have dispatched it already.
			s.suspect = false
			t.become(s, contract.StepInDoubt, "a run before this one may have dispatched it")
			s.doubt = t.silence(s, workflow.Now(t.ctx).Add(s.tool.Timeout.Std()))
			s.doubt.kind, s.doubt.why = suspected, s.reason
			if !t.reconcile(ctx, s) {
				return
			}
			s.attempts--
			continue
		}
		t.become(s, contract.StepExecuting, "dispatched to %s", s.tool.Server)
		if !t.lookBefore(ctx, s, args) {
			s.attempts--
			if s.state == contract.StepFailed || !t.pauseIdle(ctx, s, 0) {
				return
			}
			continue
		}
		out := t.callExecute(ctx, s, args)
		t.record(s, out.Evidence)
		switch out.Kind {
		case contract.Acknowledged:
			s.result, s.proof, s.committed = t.keep(s, out.Result), contract.ProofAnswer, workflow.Now(t.ctx)
			t.become(s, contract.StepCommitted, "acknowledged by %s", s.tool.Server)
			return
		case contract.NotExecuted:
			s.attempts--
			t.become(s, contract.StepExecuting, "not executed: %s", out.Why)
			if t.open(s) && !t.pauseIdle(ctx, s, out.RetryAfter.Std()) {
				return
			}
			continue
		case contract.Reset:
			s.attempts--
			t.reset = true
			return
		case contract.Refused:
			if s.tool.Inspect == nil {
				s.unverified = out.Unverified || s.unverified
				t.fail(s, "refused by "+s.tool.Server+": "+out.Why)
				return
			}
			t.become(s, contract.StepInDoubt, "refused (%s): the owner is asked whether that is so", out.Why)
			s.doubt = doubt{kind: refused, why: "refused: " + out.Why, horizon: workflow.Now(t.ctx).Add(s.tool.Settle.Std())}
		default:
			t.become(s, contract.StepInDoubt, "%s", out.Why)
			s.doubt = t.doubtOf(s, out)
			if t.sendAgain(s) {
				continue
			}
		}
		s.idle = 0
		if !t.reconcile(ctx, s) {
			return
		}
	}
}

// sendAgain tells whether a call in doubt may be sent again without asking, because its contract says so.
func (t *transaction) sendAgain(s *step) bool {
	if s.tool.Risk == contract.RiskCritical || s.retries >= s.tool.Retries || t.stopping != "" {
		return false
	}
	s.retries++
	t.become(s, contract.StepReconciling, "%s tool: it may be sent again", s.tool.Risk)
	t.become(s, contract.StepExecuting, "sent again: the contract says that it is %s", s.tool.Risk)
	return true
}

// notStarted leaves a step at the gate of a transaction that is stopping. A transaction that continues as a new run
// takes the step along as it is.
func (t *transaction) notStarted(s *step) {
	if t.stopping == "" || t.mustLeave() {
		return
	}
	if s.state == contract.StepExecuting {
		t.fail(s, fmt.Sprintf("provably not in effect (%s), and not tried again: %s", s.reason, t.stopping))
	}
}

// fail ends a step that is provably not in effect, and with it the forward way of the transaction.
func (t *transaction) fail(s *step, why string) {
	if s.state == contract.StepPending {
		t.become(s, contract.StepExecuting, "%s", why)
	}
	t.become(s, contract.StepFailed, "%s", why)
	t.stop(fmt.Sprintf("step %s failed: %s", s.def.ID, why))
}

// pauseIdle waits before a call that was not executed is tried again: what the owner asked for, or a growing time.
// False: the budget is used up and the step has failed, or the run is being left.
func (t *transaction) pauseIdle(ctx workflow.Context, s *step, after time.Duration) bool {
	s.idle++
	if s.idle >= idleTries {
		t.fail(s, fmt.Sprintf("not executed after %d tries, the last time because: %s", s.idle, s.reason))
		return false
	}
	wait := max(min(idleBackoff<<(s.idle-1), idleLongest), after)
	s.held = true
	t.sleepUntil(ctx, workflow.Now(t.ctx).Add(wait), s.def.ID+": not executed, trying again", func() bool { return t.stopping != "" })
	s.held = false
	return true
}

// tooLate says why a step that waited too long is not started any more, or "".
func (t *transaction) tooLate(s *step) string {
	if limit := s.def.NotAfter.Std(); limit > 0 && workflow.Now(t.ctx).After(t.started.Add(limit)) {
		return fmt.Sprintf("not started: it must not be later than %s after the transaction's start", s.def.NotAfter)
	}
	return ""
}

// lookBefore looks whether the effect is there before anything is dispatched, where the contract wants it: what is
// already there is a conflict, and never undone. An inconclusive look lets nothing be dispatched.
func (t *transaction) lookBefore(ctx workflow.Context, s *step, args json.RawMessage) bool {
	if s.tool.Inspect == nil || !s.tool.Inspect.Before || s.looked {
		return true
	}
	look := t.inspect(ctx, s, args)
	switch look.Verdict {
	case contract.Absent:
		s.looked = true
		return true
	case contract.Present:
		t.fail(s, "already there before it was executed: a conflict, and not ours to undo")
	default:
		t.become(s, contract.StepExecuting, "not executed: the look before it was inconclusive: %s", look.Why)
	}
	return false
}

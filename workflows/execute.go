package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
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
			if t.stopping != "" && !t.mustLeave() && s.state == contract.StepExecuting {
				t.abandon(s)
			}
			return
		}
		if s.suspect {
			if t.suspectStep(s); s.state == contract.StepInDoubt && !t.reconcile(ctx, s) {
				return
			}
			continue
		}
		if late := t.tooLate(s); late != "" {
			t.giveUp(s, late)
			return
		}
		s.attempts++
		args, err := t.args(s)
		if err == nil {
			err = fits(args)
		}
		if err != nil {
			s.attempts--
			t.giveUp(s, "it cannot be called: "+err.Error())
			return
		}
		t.become(s, contract.StepExecuting, "dispatched to %s", s.tool.Server)
		if !t.lookBefore(ctx, s, args) {
			s.attempts--
			if s.state != contract.StepExecuting || !t.pauseIdle(ctx, s, 0) {
				return
			}
			continue
		}
		out := t.callExecute(ctx, s, args)
		t.record(s, out.Evidence)
		if out.Kind != contract.NotExecuted && out.Kind != contract.Reset {
			s.asserted = false // what was said of it was about an attempt before this one
		}
		switch out.Kind {
		case contract.Acknowledged:
			s.result, s.proof, s.committed = t.keep(s, out.Result), contract.ProofAnswer, workflow.Now(t.ctx)
			s.unsettled, s.asserted = false, false
			t.become(s, contract.StepCommitted, "acknowledged by %s", s.tool.Server)
			return
		case contract.Reset:
			s.attempts--
			t.rewind()
			return
		case contract.NotExecuted:
			s.attempts--
			t.become(s, contract.StepExecuting, "%s%s", notExecuted, out.Why)
			if t.open(s) && !t.pauseIdle(ctx, s, out.RetryAfter.Std()) {
				return
			}
			continue
		case contract.Refused:
			if !s.unsettled && (s.tool.Inspect == nil || s.tool.Risk == contract.RiskReadOnly) {
				s.unverified = s.tool.Risk != contract.RiskReadOnly
				t.fail(s, "refused by "+s.tool.Server+": "+out.Why)
				return
			}
		default:
			if t.sendAgain(s, out) {
				continue
			}
			if s.tool.Risk == contract.RiskReadOnly {
				t.fail(s, "no answer, and nothing that could be in effect: "+out.Why)
				return
			}
		}
		s.idle = 0
		s.doubt = t.doubtOf(s, out)
		t.become(s, contract.StepInDoubt, "%s", s.doubt.why)
		if !t.reconcile(ctx, s) {
			return
		}
	}
}

// sendAgain tells whether a call in doubt may be sent again without asking, because its contract says so. What became
// of it stays open until an answer to a later one settles it.
func (t *transaction) sendAgain(s *step, out contract.Outcome) bool {
	if s.tool.Risk == contract.RiskCritical || s.retries >= s.tool.Retries || t.stopping != "" {
		return false
	}
	s.retries++
	s.doubt = t.doubtOf(s, out)
	s.unsettled = s.tool.Risk == contract.RiskIdempotent
	t.become(s, contract.StepExecuting, "%s; sent again: the contract says that it is %s", out.Why, s.tool.Risk)
	return true
}

// abandon ends a step that waits to be dispatched in a transaction that is stopping.
func (t *transaction) abandon(s *step) {
	t.giveUp(s, fmt.Sprintf("%s; not tried again: %s", s.reason, t.stopping))
}

// giveUp ends a step that is not dispatched any more: it has failed, unless a call before is unsettled. Then it is in
// doubt.
func (t *transaction) giveUp(s *step, why string) {
	if !s.unsettled {
		t.fail(s, why)
		return
	}
	s.unsettled = false
	t.become(s, contract.StepInDoubt, "%s, and a call before it was not settled", why)
	t.stop(fmt.Sprintf("step %s was given up: %s", s.def.ID, why))
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
// False: the budget is used up and the step is given up.
func (t *transaction) pauseIdle(ctx workflow.Context, s *step, after time.Duration) bool {
	s.idle++
	if s.idle >= idleTries {
		t.giveUp(s, fmt.Sprintf("not executed after %d tries: %s", s.idle, strings.TrimPrefix(s.reason, notExecuted)))
		return false
	}
	s.held = true
	t.sleepUntil(ctx, workflow.Now(t.ctx).Add(max(idleWait(s.idle), after)), s.def.ID+": not executed, trying again",
		func() bool { return t.stopping != "" })
	s.held = false
	return true
}

// notExecuted begins the reason of a step that waits to be tried again.
const notExecuted = "not executed: "

// idleWait is the time before the next try after n calls that were not executed.
func idleWait(n int) time.Duration { return min(idleBackoff<<(n-1), idleLongest) }

// tooLate says why a step that waited too long is not started any more, or "".
func (t *transaction) tooLate(s *step) string {
	if left, limited := t.timeLeft(s); limited && left <= 0 {
		return fmt.Sprintf("not started: it must not be later than %s after the transaction's start", s.def.NotAfter)
	}
	return ""
}

// timeLeft is how long a step may still be started, where that is limited.
func (t *transaction) timeLeft(s *step) (left time.Duration, limited bool) {
	limit := s.def.NotAfter.Std()
	return t.started.Add(limit).Sub(workflow.Now(t.ctx)), limit > 0
}

// lookBefore looks whether the effect is there before anything is dispatched, where the contract wants it: what is
// already there is a conflict, and never undone. An inconclusive look lets nothing be dispatched.
func (t *transaction) lookBefore(ctx workflow.Context, s *step, args json.RawMessage) bool {
	if s.tool.Inspect == nil || !s.tool.Inspect.Before || s.looked {
		return true
	}
	look := t.inspect(ctx, s, args)
	switch {
	case t.mustLeave():
		t.become(s, contract.StepExecuting, notExecuted+"the look before it was cut short")
	case look.Verdict == contract.Absent:
		s.looked = true
		return true
	case look.Verdict == contract.Present:
		t.giveUp(s, "already there before it was executed: a conflict, and not ours to undo")
	default:
		t.become(s, contract.StepExecuting, notExecuted+"the look before it was inconclusive: %s", look.Why)
	}
	return false
}

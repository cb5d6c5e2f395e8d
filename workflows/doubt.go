package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// doubtKind says what we have of a call whose outcome is open; it decides when absence counts.
type doubtKind string

const (
	// refused: an answer that the contract says is to be believed. One look confirms it.
	refused doubtKind = "refused"
	// answered: an error answer that proves nothing. The owner has answered, so it settles from then on.
	answered doubtKind = "answered"
	// silent: no answer. The attempt may still write until its write deadline, and the owner settles after that.
	silent doubtKind = "silent"
	// suspected: this run has not called, but one before it may have. Counted like silence, except that executing
	// after proven absence is no retry.
	suspected doubtKind = "suspected"
	// unfinished: the owner has taken the call, and not finished it. It may take effect at any time: absence proves
	// nothing.
	unfinished doubtKind = "unfinished"
)

// doubt is an open outcome.
type doubt struct {
	kind doubtKind
	why  string
	// horizon is the first moment at which the second look counts: settle after the answer, or after the last write
	// deadline.
	horizon time.Time
	// again: the owner was asked once more when the transaction stopped.
	again bool
}

// doubtOf is the doubt that an outcome leaves. Where a call before it is unsettled, absence counts for both only when
// it counts for each.
func (t *transaction) doubtOf(s *step, out contract.Outcome) doubt {
	now, settle := workflow.Now(t.ctx), s.tool.Settle.Std()
	d := doubt{kind: silent, why: out.Why, horizon: latest(out.WriteDeadline, now).Add(settle)}
	switch {
	case out.Kind == contract.Refused:
		d = doubt{kind: refused, why: "refused: " + out.Why, horizon: now.Add(settle)}
	case out.Answered:
		d = doubt{kind: answered, why: out.Why, horizon: now.Add(settle)}
	case out.Open:
		d.kind = unfinished
	}
	if s.unsettled {
		d.horizon = latest(d.horizon, s.doubt.horizon)
		if d.kind == refused {
			d.kind = answered
		}
	}
	return d
}

// suspectStep puts a step in doubt that a run before this one may have dispatched. Reads have no effect to doubt, and
// what is idempotent may be sent again: that is settled by the next answer.
func (t *transaction) suspectStep(s *step) {
	s.suspect = false
	d := doubt{kind: suspected, why: "a run before this one may have dispatched it",
		horizon: workflow.Now(t.ctx).Add(s.tool.Timeout.Std() + s.tool.Settle.Std())}
	switch {
	case s.tool.Risk == contract.RiskReadOnly:
	case s.tool.Risk == contract.RiskIdempotent && t.stopping == "":
		s.doubt, s.unsettled = d, true
	default:
		s.doubt = d
		s.attempts = max(s.attempts, 1)
		t.become(s, contract.StepInDoubt, "%s", d.why)
	}
}

// reconcile asks the owner what became of a step in doubt. True: its absence is proven and it may be executed again.
// Otherwise the step is RECOVERED, FAILED or UNKNOWN, or the run has to be left.
func (t *transaction) reconcile(ctx workflow.Context, s *step) (again bool) {
	s.doubted = true
	if s.tool.Inspect == nil {
		t.cannotTell(s, s.doubt.why+", and its contract has no inspector to ask")
		return false
	}
	args, err := t.args(s)
	if err != nil {
		t.cannotTell(s, fmt.Sprintf("%s, and its arguments cannot be filled: %v", s.doubt.why, err))
		return false
	}
	t.become(s, contract.StepReconciling, "%s: asking %s", s.doubt.why, s.tool.Inspect.Tool)
	look := t.inspect(ctx, s, args)
	if look.Verdict == contract.Absent && s.doubt.kind != refused && !t.mustLeave() {
		t.become(s, contract.StepReconciling, "%s: not there yet, looking again when %s has settled", s.doubt.why, s.tool.Server)
		t.sleepUntil(ctx, s.doubt.horizon, s.def.ID+": letting "+s.tool.Server+" settle", never)
		if !t.mustLeave() {
			look = t.inspect(ctx, s, args)
		}
	}
	if t.mustLeave() {
		return false
	}
	switch look.Verdict {
	case contract.Present:
		t.found(s, look)
	case contract.Absent:
		return t.provenAbsent(s)
	default:
		t.cannotTell(s, s.doubt.why+", and the owner cannot tell: "+look.Why)
	}
	return false
}

// found ends a doubt: the effect is there. It is RECOVERED only where something proves that it is ours.
func (t *transaction) found(s *step, look contract.Look) {
	proof := t.ours(s)
	if proof == "" {
		t.cannotTell(s, s.doubt.why+"; something is there, and nothing proves that it is ours")
		return
	}
	s.result, s.proof, s.committed = t.keep(s, look.Result), proof, workflow.Now(t.ctx)
	s.unsettled, s.asserted = false, false
	t.become(s, contract.StepRecovered, "%s; %s found it, recognised by %s", s.doubt.why, s.tool.Inspect.Tool, proof)
}

// provenAbsent ends a doubt: the effect is not there, and will not be. True: the step may be executed.
func (t *transaction) provenAbsent(s *step) (again bool) {
	s.unsettled = false
	switch {
	case s.doubt.kind == unfinished:
		t.cannotTell(s, s.doubt.why+"; it is not there yet, and may come at any time")
		return false
	case s.doubt.kind == suspected && t.stopping == "":
		t.become(s, contract.StepExecuting, "%s; proven absent: executing", s.doubt.why)
	case t.mayRetry(s):
		s.retries++
		t.become(s, contract.StepExecuting, "%s; proven absent: executing again (%d of %d)", s.doubt.why, s.retries, s.tool.Retries)
	default:
		t.fail(s, s.doubt.why+"; proven absent")
		return false
	}
	return true
}

// cannotTell makes a step UNKNOWN. Until a human has resolved it nothing new is dispatched, and what no worker has begun
// is recalled.
func (t *transaction) cannotTell(s *step, why string) {
	t.become(s, contract.StepUnknown, "%s", why)
	t.flight.recall(executions)
}

// mayRetry tells whether a step whose absence is proven may be executed again. A refusal is not tried again.
func (t *transaction) mayRetry(s *step) bool {
	return s.retries < s.tool.Retries && s.doubt.kind != refused && t.stopping == ""
}

// ours says why a thing that the inspector found present is this transaction's own effect, or "" if nothing proves it.
func (t *transaction) ours(s *step) contract.Proof {
	proves := func(proof contract.Proof) bool { return slices.Contains(s.tool.Inspect.Proves, proof) }
	switch {
	case proves(contract.ProofTx):
		return contract.ProofTx
	case s.proof == contract.ProofAnswer && proves(contract.ProofResult):
		return contract.ProofResult
	case s.looked:
		return contract.ProofLook
	case s.tool.OursByKey:
		return contract.ProofKey
	case s.proof == contract.ProofHuman && proves(contract.ProofResult):
		return contract.ProofHuman
	}
	return ""
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

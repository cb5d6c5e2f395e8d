package workflows

import (
	"fmt"
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

// doubtOf is the doubt that an outcome leaves.
func (t *transaction) doubtOf(s *step, out contract.Outcome) doubt {
	if out.Answered {
		return doubt{kind: answered, why: out.Why, horizon: workflow.Now(t.ctx).Add(s.tool.Settle.Std())}
	}
	d := t.silence(s, out.WriteDeadline)
	d.why = out.Why
	return d
}

// silence is the doubt that a call without an answer leaves. deadline is the last moment at which it may have begun to
// write.
func (t *transaction) silence(s *step, deadline time.Time) doubt {
	return doubt{kind: silent, why: "no answer", horizon: latest(deadline, workflow.Now(t.ctx)).Add(s.tool.Settle.Std())}
}

// reconcile asks the owner what became of a step in doubt. True: its absence is proven and it may be executed again.
// Otherwise the step is RECOVERED, FAILED or UNKNOWN, or the run has to be left.
func (t *transaction) reconcile(ctx workflow.Context, s *step) (again bool) {
	s.doubted = true
	if s.tool.Inspect == nil {
		t.become(s, contract.StepUnknown, "%s, and its contract has no inspector to ask", s.doubt.why)
		t.flight.recall()
		return false
	}
	args, err := t.args(s)
	if err != nil {
		t.become(s, contract.StepUnknown, "%s, and its arguments cannot be filled: %v", s.doubt.why, err)
		return false
	}
	if s.state == contract.StepInDoubt {
		t.become(s, contract.StepReconciling, "%s: asking %s", s.doubt.why, s.tool.Inspect.Tool)
	}
	look := t.inspect(ctx, s, args)
	if look.Verdict == contract.Absent && s.doubt.kind != refused && !t.mustLeave() {
		s.reason = fmt.Sprintf("%s: not there yet, looking again when %s has settled", s.doubt.why, s.tool.Server)
		t.changed()
		t.sleepUntil(ctx, s.doubt.horizon, s.def.ID+": letting "+s.tool.Server+" settle", func() bool { return false })
		if t.mustLeave() {
			return false
		}
		look = t.inspect(ctx, s, args)
	}
	if t.mustLeave() {
		return false
	}
	switch look.Verdict {
	case contract.Present:
		proof := t.ours(s)
		if proof == "" {
			t.become(s, contract.StepUnknown, "%s; something is there, and nothing proves that it is ours", s.doubt.why)
			t.flight.recall()
			return false
		}
		s.result, s.proof, s.committed = t.keep(s, look.Result), proof, workflow.Now(t.ctx)
		t.become(s, contract.StepRecovered, "%s; %s found it, recognised by %s", s.doubt.why, s.tool.Inspect.Tool, proof)
		return false
	case contract.Absent:
		if s.doubt.kind == suspected && t.stopping == "" {
			t.become(s, contract.StepExecuting, "%s; proven absent: executing", s.doubt.why)
			return true
		}
		if t.mayRetry(s) {
			s.retries++
			t.become(s, contract.StepExecuting, "%s; proven absent: executing again (%d of %d)", s.doubt.why, s.retries, s.tool.Retries)
			return true
		}
		t.fail(s, s.doubt.why+"; proven absent")
		return false
	default:
		t.become(s, contract.StepUnknown, "%s, and the owner cannot tell: %s", s.doubt.why, look.Why)
		t.flight.recall()
		return false
	}
}

// mayRetry tells whether a step whose absence is proven may be executed again. A refusal is not tried again.
func (t *transaction) mayRetry(s *step) bool {
	return s.retries < s.tool.Retries && s.doubt.kind != refused && t.stopping == ""
}

// ours says why a thing that the inspector found present is this transaction's own effect, or "" if nothing proves it.
func (t *transaction) ours(s *step) contract.Proof {
	proves := func(proof contract.Proof) bool {
		for _, p := range s.tool.Inspect.Proves {
			if p == proof {
				return true
			}
		}
		return false
	}
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

package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// rollback takes a stopped transaction to its final state: nothing is in effect (FAILED), a human declined (RETAINED),
// or the approved undo plan was carried out (COMPENSATED, PARTIALLY_COMPENSATED). "": forward recovery was chosen, or
// the run has to be left.
func (t *transaction) rollback(ctx workflow.Context) contract.TxState {
	for !t.mustLeave() {
		switch {
		case t.approved:
			if t.compensate(ctx) {
				t.approved, t.reason = false, t.stopping
				return t.undone()
			}
			continue
		case !t.any(hasEffect):
			t.reason = t.stopping
			return t.undone()
		case t.ask == nil:
			if t.publish(ctx); t.mustLeave() {
				return ""
			}
		}
		q := t.ask
		switch t.answer(ctx) {
		case answerApproved:
			t.approve()
		case answerRejected:
			t.reason = "the rollback was " + q.said + "; the effects stay"
			return contract.TxRetained
		case answerResume:
			t.tryAgain()
			return ""
		case answerExpired: // what is there now may be something else: look again, and publish anew
			t.enter(contract.TxRunning, "nobody approved the undo plan in time: looking again")
		}
	}
	return ""
}

// hasEffect tells whether the step has an effect in the world that somebody might want undone.
func hasEffect(s *step) bool { return s.state.InEffect() && s.tool.Risk != contract.RiskReadOnly }

// undone is the final state after a rollback.
func (t *transaction) undone() contract.TxState {
	switch {
	case t.any(hasEffect):
		return contract.TxPartiallyCompensated
	case t.any(func(s *step) bool { return s.state == contract.StepCompensated || s.undos > 0 }):
		return contract.TxCompensated
	}
	return contract.TxFailed
}

// tryAgain takes the failed steps, and those that were skipped because of them, back to the beginning.
func (t *transaction) tryAgain() {
	t.stopping, t.undo = "", nil
	for _, s := range t.steps {
		switch s.state {
		case contract.StepFailed, contract.StepSkipped:
			s.retries, s.idle, s.unverified, s.looked = 0, 0, false, false
			t.become(s, contract.StepPending, "to be tried again")
		}
	}
}

// approve puts the published plan in force. Steps whose compensation had failed are tried again, or stay, as it says.
func (t *transaction) approve() {
	t.approved = true
	for _, kept := range t.undo.Kept {
		if s := t.byID[kept.Step]; s.state == contract.StepCompensationFailed {
			s.accepted = true
		}
	}
	for _, wave := range t.undo.Waves {
		for _, undo := range wave {
			if s := t.byID[undo.Step]; s.state == contract.StepCompensationFailed {
				s.undoing = s.undoing.again()
				t.become(s, contract.StepCompensating, "to be tried again")
			}
		}
	}
}

// compensate carries out the approved undo plan. Every step waits for everything that depended on it; what does not
// depend on a compensation that failed goes on. False: what is there is no longer what was approved, and a new plan is
// needed, or the run has to be left.
func (t *transaction) compensate(ctx workflow.Context) (done bool) {
	planned := map[string]contract.Undo{}
	for _, wave := range t.undo.Waves {
		for _, undo := range wave {
			planned[undo.Step] = undo
		}
	}
	t.keepRest(planned)
	for {
		t.launchUndo(planned)
		t.showRollback()
		t.await(ctx, func() bool { return t.replan || t.any(undoResolved) || t.undoEnded(planned) })
		again := t.resolveCompensations()
		switch {
		case t.replan || t.mustLeave():
			t.settle(ctx)
			t.approved, t.replan = !t.replan, false
			return false
		case !again:
			return true
		}
	}
}

// keepRest marks the effects that are not in the plan: they stay.
func (t *transaction) keepRest(planned map[string]contract.Undo) {
	why := map[string]string{}
	for _, residue := range t.undo.Kept {
		why[residue.Step] = residue.Why
	}
	for _, s := range t.steps {
		if _, ok := planned[s.def.ID]; !ok && hasEffect(s) && s.state != contract.StepCompensationFailed {
			t.become(s, contract.StepNotCompensable, "%s", why[s.def.ID])
		}
	}
}

// showRollback shows what the rollback is at: where a human is needed for one step, that shows.
func (t *transaction) showRollback() {
	i := slices.IndexFunc(t.steps, waitsForHuman)
	if i < 0 {
		t.enter(contract.TxCompensating, t.stopping)
		return
	}
	t.enter(contract.TxAwaitingResolution, fmt.Sprintf("step %s is COMPENSATION_FAILED: %s", t.steps[i].def.ID, t.steps[i].reason))
}

// waitsForHuman tells whether a step's compensation failed and no human has accepted it.
func waitsForHuman(s *step) bool { return s.state == contract.StepCompensationFailed && !s.accepted }

// undoResolved tells whether a human has said what is to be done about a failed compensation.
func undoResolved(s *step) bool { return waitsForHuman(s) && s.resolution != nil }

// undoEnded tells whether nothing is left to be done for the plan.
func (t *transaction) undoEnded(planned map[string]contract.Undo) bool {
	if t.any(func(s *step) bool { return s.running || waitsForHuman(s) }) {
		return false
	}
	due := t.undoDue(planned)
	return !t.any(func(s *step) bool { return due[s.index] })
}

// resolveCompensations does what humans said of compensations that failed, and tells whether they did.
func (t *transaction) resolveCompensations() (any bool) {
	for _, s := range t.steps {
		if !undoResolved(s) {
			continue
		}
		any = true
		d := s.resolution
		if d.As == contract.ResolveAccepted {
			s.accepted, s.resolution = true, nil
			t.become(s, contract.StepCompensationFailed, "%s accepts that it stays: %s", d.By, d.Reason)
			continue
		}
		s.undoing = s.undoing.again()
		t.become(s, contract.StepCompensating, "%s asks to try again", d.By)
	}
	return any
}

// undoDue says, by index, which steps of the plan can be undone now: those of which everything that depended on them,
// directly or not, is out of the way.
func (t *transaction) undoDue(planned map[string]contract.Undo) []bool {
	const unseen, clear, blocked = 0, 1, 2
	below := make([]int, len(t.steps)) // what depends on the step
	var look func(s *step) int
	look = func(s *step) int {
		if below[s.index] == unseen {
			below[s.index] = clear
			for _, dependent := range s.needed {
				if !outOfTheWay(dependent) || look(dependent) == blocked {
					below[s.index] = blocked
					break
				}
			}
		}
		return below[s.index]
	}
	due := make([]bool, len(t.steps))
	for _, s := range t.steps {
		if _, ok := planned[s.def.ID]; !ok {
			continue
		}
		switch s.state {
		case contract.StepCommitted, contract.StepRecovered, contract.StepCompensating:
			due[s.index] = look(s) == clear
		}
	}
	return due
}

// outOfTheWay tells whether what a step needed can be undone: it has no effect, or one that stays by decision.
func outOfTheWay(s *step) bool {
	return !hasEffect(s) || s.state == contract.StepNotCompensable || s.accepted
}

// launchUndo starts the compensation of every step whose turn has come.
func (t *transaction) launchUndo(planned map[string]contract.Undo) {
	active := 0
	for _, s := range t.steps {
		if s.running {
			active++
		}
	}
	for i, due := range t.undoDue(planned) {
		s := t.steps[i]
		if active >= maxActive || t.replan || t.mustLeave() {
			return
		}
		if s.running || !due {
			continue
		}
		active++
		s.running = true
		workflow.GoNamed(t.ctx, "undo "+s.def.ID, func(ctx workflow.Context) {
			if !t.undoStep(ctx, s, planned[s.def.ID]) {
				t.replan = true
			}
			s.running = false
			t.launchUndo(planned)
			t.showRollback()
		})
	}
}

package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// maxActive bounds the steps that are at work at the same time, those that are held at the gate not counted.
const maxActive = 64

// forward executes steps until every one is in effect (true), or until the transaction has stopped and nothing is in
// flight (false). It waits for humans where a step is UNKNOWN.
func (t *transaction) forward(ctx workflow.Context) (done bool) {
	t.enter(contract.TxRunning, t.stopping)
	for {
		t.launch()
		t.await(ctx, t.quiet)
		switch {
		case t.mustLeave():
			t.settle(ctx)
			return false
		case t.unknowns > 0:
			t.awaitResolution(ctx)
		case t.all(stands) && (t.stopping == "" || t.stopping == takenOver):
			t.stopping = ""
			return true
		case t.stopping != "":
			if t.abandonPending() {
				return false
			}
		default:
			panic("nothing can go on, and nothing is in the way")
		}
	}
}

// stands tells whether a step is in effect, and nothing has been done to undo it.
func stands(s *step) bool {
	return s.state == contract.StepCommitted || s.state == contract.StepRecovered
}

// launch starts every step whose turn has come.
func (t *transaction) launch() {
	active := 0
	for _, s := range t.steps {
		if s.running && !s.held {
			active++
		}
	}
	for _, s := range t.steps {
		if active >= maxActive || t.mustLeave() {
			return
		}
		if s.running || !t.due(s) {
			continue
		}
		active++
		s.running = true
		workflow.GoNamed(t.ctx, "step "+s.def.ID, func(ctx workflow.Context) {
			t.advance(ctx, s)
			s.running = false
			t.launch()
		})
	}
}

// due tells whether there is something to do for a step: it may be dispatched, or its owner has to be asked.
func (t *transaction) due(s *step) bool {
	switch s.state {
	case contract.StepPending, contract.StepExecuting:
		return t.open(s)
	case contract.StepInDoubt, contract.StepReconciling:
		return true
	}
	return false
}

// advance takes one step as far as it gets.
func (t *transaction) advance(ctx workflow.Context, s *step) {
	switch s.state {
	case contract.StepPending, contract.StepExecuting:
		t.execute(ctx, s)
	case contract.StepInDoubt, contract.StepReconciling:
		if t.reconcile(ctx, s) {
			t.execute(ctx, s)
		}
	}
}

// open tells whether a step may be dispatched: everything it needs is in effect, nothing is stopping, and no step is
// UNKNOWN.
func (t *transaction) open(s *step) bool {
	if t.stopping != "" || t.mustLeave() || t.unknowns > 0 {
		return false
	}
	for _, need := range s.needs {
		if !need.state.InEffect() {
			return false
		}
	}
	return true
}

// gate waits until a step may be dispatched; what a human has said is judged before. False: the transaction is stopping
// or leaving, and it may not.
func (t *transaction) gate(ctx workflow.Context, s *step) bool {
	s.held = true
	t.await(ctx, func() bool { return t.allJudged() && (t.open(s) || t.stopping != "") })
	s.held = false
	return t.open(s)
}

// quiet tells whether nothing goes on by itself any more: no call is in flight, no owner is settling, and no step may
// be dispatched.
func (t *transaction) quiet() bool {
	return t.all(func(s *step) bool {
		if s.running {
			return s.held && t.stopping == "" && !t.open(s)
		}
		return !t.due(s)
	})
}

func (t *transaction) all(holds func(*step) bool) bool {
	return !t.any(func(s *step) bool { return !holds(s) })
}

func (t *transaction) any(holds func(*step) bool) bool { return slices.ContainsFunc(t.steps, holds) }

// abandonPending gives up what was not started, in a transaction that is stopping. False: an owner has to be asked
// first.
func (t *transaction) abandonPending() bool {
	for _, s := range t.steps {
		if !s.suspect {
			continue
		}
		if _, err := t.args(s); err == nil {
			t.suspectStep(s)
		}
	}
	if t.any(t.due) {
		return false
	}
	for _, s := range t.steps {
		switch {
		case s.state == contract.StepExecuting, s.state == contract.StepPending && s.unsettled:
			t.abandon(s)
		case s.state == contract.StepPending && s.suspect:
			t.become(s, contract.StepSkipped, "not started by this run, nor asked about: what it needs is not in effect; %s", t.stopping)
		case s.state == contract.StepPending:
			t.become(s, contract.StepSkipped, "not started: %s", t.stopping)
		}
		s.suspect = false
	}
	return !t.any(t.due)
}

// suspected tells whether a run before this one may have dispatched a step that this one knows nothing of.
func (t *transaction) suspected() bool {
	return t.any(func(s *step) bool { return s.suspect })
}

// awaitResolution waits until a human has said what became of an UNKNOWN step, and does it. In a transaction that is
// stopping, the owners are asked once more before.
func (t *transaction) awaitResolution(ctx workflow.Context) {
	resolved := func(s *step) bool { return s.state == contract.StepUnknown && s.resolution != nil }
	if !t.any(resolved) {
		if t.stopping != "" && t.lookAgain() {
			return
		}
		for _, s := range t.steps {
			if s.state == contract.StepUnknown {
				t.enter(contract.TxAwaitingResolution, fmt.Sprintf("step %s is UNKNOWN: %s", s.def.ID, s.reason))
				break
			}
		}
		stopped := t.stopping
		t.await(ctx, func() bool { return t.any(resolved) || t.stopping != stopped })
	}
	for _, s := range t.steps {
		if resolved(s) && !t.mustLeave() {
			t.applyResolution(s)
		}
	}
	if t.unknowns == 0 && !t.mustLeave() {
		t.enter(contract.TxRunning, t.stopping)
	}
}

// lookAgain asks the owner of every UNKNOWN step once more before a human is asked to decide about a rollback: undoing
// what cannot be seen is a second bug. It says whether there was one to ask.
func (t *transaction) lookAgain() bool {
	asked := false
	for _, s := range t.steps {
		if s.state == contract.StepUnknown && s.tool.Inspect != nil && !s.doubt.again {
			s.doubt.again, asked = true, true
			t.become(s, contract.StepReconciling, "the transaction is stopping: asking the owner once more")
		}
	}
	return asked
}

// applyResolution does what a human said of an UNKNOWN step.
func (t *transaction) applyResolution(s *step) {
	d := s.resolution
	switch d.As {
	case contract.ResolveCommitted:
		s.result, s.proof = t.keep(s, contract.Keep(d.Result, s.def.Keep, contract.ResultLimit)), contract.ProofHuman
		s.committed, s.asserted, s.unsettled = workflow.Now(t.ctx), false, false
		t.become(s, contract.StepCommitted, "%s says that it is in effect: %s", d.By, d.Reason)
	case contract.ResolveAbsent:
		s.asserted, s.unsettled, s.looked = true, false, false
		if t.mayRetry(s) {
			s.retries++
			t.become(s, contract.StepExecuting, "%s says that it is absent: %s", d.By, d.Reason)
			return
		}
		t.fail(s, fmt.Sprintf("%s says that it is absent: %s", d.By, d.Reason))
	case contract.ResolveInspect:
		t.become(s, contract.StepReconciling, "%s asks to look again", d.By)
	}
}

package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// continueAsNew hands over to a new run. Nothing is in flight, and every signal that has arrived has been judged.
func (t *transaction) continueAsNew(ctx workflow.Context) error {
	t.settle(ctx)
	t.drain(ctx)
	t.refresh()
	start, _ := t.carry()
	return workflow.NewContinueAsNewError(t.ctx, contract.WorkflowTransaction, start)
}

// carry is the start of the next run, with everything that it has to know, and whether Temporal takes that much.
// Evidence is left out where there is too much of it.
func (t *transaction) carry() (next contract.Start, fits bool) {
	carried := &contract.Carried{
		Tx: t.tx.ID, Runs: t.runs, Resolved: t.resolved, Requester: t.requester, Started: t.started,
		State: t.state, Decisions: t.decisions, Notes: t.notes,
		Stopping: t.stopping, Plans: t.plans, Transitions: t.transitions,
		Undo: t.undo, Approved: t.approved, Ending: t.ending, Reason: t.reason,
		Reset: t.reset || t.rewound(),
	}
	if q := t.ask; q != nil {
		carried.Ask = &contract.CarriedQuestion{
			About: q.about, Approvals: q.approvals, Answer: q.answer, Said: q.said, Expires: q.expires,
		}
	}
	for _, s := range t.steps {
		carried.Steps = append(carried.Steps, contract.CarriedStep{
			StepSnapshot: t.show(s), Retries: s.retries, Idle: s.idle,
			Doubted: s.doubted, Doubt: string(s.doubt.kind), Why: s.doubt.why, Horizon: s.doubt.horizon, Unsettled: s.unsettled,
			Looked: s.looked, Committed: s.committed, Suspect: s.suspect, Asserted: s.asserted, Resolution: s.resolution,
			Sent: s.undoing.sent, UndoHorizon: s.undoing.horizon, UndoAcknowledged: s.undoing.acknowledged, UndoOpen: s.undoing.open,
		})
	}
	next = t.start
	next.Carried = carried
	if len(t.resolved.Input) > 0 {
		next.Input = nil // the resolved one is used
	}
	evidence := func(most int) {
		for i := range carried.Steps {
			e := &carried.Steps[i].Evidence
			*e = (*e)[max(0, len(*e)-most):]
		}
	}
	for _, most := range []int{4, 1, 0} {
		if len(encode(next)) <= valueLimit {
			return next, true
		}
		evidence(most)
	}
	return next, len(encode(next)) <= valueLimit
}

// resume goes on from where the run before stopped. After a Temporal reset nothing that it knew can be relied on, nor in
// a start that no run before this one has written: the owner of every step is asked, and no approval is taken over.
func (t *transaction) resume(c *contract.Carried, continued bool) {
	t.tx.ID = c.Tx
	t.resolved = c.Resolved
	must(t.plan())
	t.requester, t.started = c.Requester, c.Started
	t.state, t.reason, t.decisions, t.notes = c.State, c.Reason, c.Decisions, c.Notes
	t.stopping, t.plans, t.transitions = c.Stopping, c.Plans, c.Transitions+1
	for _, from := range c.Steps {
		t.resumeStep(t.byID[from.ID], from)
	}
	if c.Reset || !continued {
		t.distrust()
		return
	}
	t.runs = append(c.Runs[max(0, len(c.Runs)-maxRuns):], t.tx.Run)
	t.undo, t.approved, t.ending = c.Undo, c.Approved, c.Ending
	if c.Ask != nil {
		t.ask = t.newQuestion(c.Ask.About)
		t.ask.approvals, t.ask.answer, t.ask.said = c.Ask.Approvals, c.Ask.Answer, c.Ask.Said
		t.ask.expires = c.Ask.Expires
	}
}

// maxRuns bounds the runs before this one that a decision may name.
const maxRuns = 20

func (t *transaction) resumeStep(s *step, from contract.CarriedStep) {
	t.set(s, from.State)
	s.reason, s.since = from.Reason, from.Since
	s.attempts, s.retries, s.idle, s.undos = from.Attempts, from.Retries, from.Idle, from.Undos
	s.result, s.proof, s.unverified, s.accepted = t.keep(s, from.Result), from.Proof, from.Unverified, from.Accepted
	s.evidence, s.committed, s.looked, s.suspect = from.Evidence, from.Committed, from.Looked, from.Suspect
	s.doubted, s.unsettled, s.asserted, s.resolution = from.Doubted, from.Unsettled, from.Asserted, from.Resolution
	s.doubt = doubt{kind: doubtKind(from.Doubt), why: from.Why, horizon: from.Horizon}
	s.undoing = undoing{sent: from.Sent, horizon: from.UndoHorizon, acknowledged: from.UndoAcknowledged, open: from.UndoOpen}
}

// takenOver is why nothing new is started after a Temporal reset.
const takenOver = "taken over after a Temporal reset, which by itself repeats nothing"

// distrust takes over a transaction whose history was rewound by a Temporal reset. Another run may have done anything
// since, a rollback that a human approved included: every step is asked about, and none is executed. What was approved
// was approved for another run. Where effects are found, a human decides: roll back, keep them, or resume.
func (t *transaction) distrust() {
	t.notes = append(t.notes, "taken over after a Temporal reset: every owner is asked before anything is done")
	if t.stopping == "" && t.state != contract.TxAwaitingStartApproval {
		t.stopping = takenOver
	}
	t.plans = max(t.plans, 1) // an approval has to name its plan's digest from now on
	t.reason = ""
	if t.state == contract.TxAwaitingStartApproval {
		t.ask = t.newQuestion(askStart)
	} else {
		t.state = contract.TxRunning
	}
	for _, s := range t.steps {
		read := s.tool.Risk == contract.RiskReadOnly
		if read && s.state == contract.StepCommitted {
			continue
		}
		t.set(s, contract.StepPending)
		s.reason, s.accepted, s.asserted, s.unsettled, s.resolution = "", false, false, false, nil
		s.undoing = undoing{}
		switch {
		case read:
		case s.attempts == 0:
			s.suspect = true
		default:
			t.suspectStep(s)
		}
	}
}

package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// continueAsNew hands over to a new run. Nothing is in flight, and every signal that has arrived has been judged.
func (t *transaction) continueAsNew(ctx workflow.Context) error {
	t.settle(ctx)
	if err := workflow.Await(ctx, func() bool { return t.judging == 0 && workflow.AllHandlersFinished(t.ctx) }); err != nil {
		return err
	}
	t.refresh()
	start := t.start
	start.Carried = t.carry()
	return workflow.NewContinueAsNewError(t.ctx, contract.WorkflowTransaction, start)
}

// carry is everything that the next run has to know.
func (t *transaction) carry() *contract.Carried {
	carried := &contract.Carried{
		Tx: t.tx.ID, Resolved: t.resolved, Requester: t.requester, Started: t.started,
		State: t.state, Decisions: t.decisions, Notes: t.notes,
		Stopping: t.stopping, Plans: t.plans, Transitions: t.transitions,
		Undo: t.undo, Approved: t.approved, Reset: t.reset,
	}
	for _, s := range t.steps {
		shown := t.show(s, evidenceShown)
		shown.Args = nil // filled again from what is pinned
		carried.Steps = append(carried.Steps, contract.CarriedStep{
			StepSnapshot: shown, Retries: s.retries, Idle: s.idle,
			Doubted: s.doubted, Doubt: string(s.doubt.kind), Horizon: s.doubt.horizon,
			Looked: s.looked, Committed: s.committed, Suspect: s.suspect,
		})
	}
	return carried
}

// resume goes on from where the run before stopped. After a Temporal reset nothing that it knew can be relied on: the
// owner of every step is asked, and no approval is taken over.
func (t *transaction) resume(c *contract.Carried) {
	t.tx.ID = c.Tx
	t.resolved = c.Resolved
	t.plan()
	t.requester, t.started = c.Requester, c.Started
	t.state, t.decisions, t.notes = c.State, c.Decisions, c.Notes
	t.stopping, t.plans, t.transitions = c.Stopping, c.Plans, c.Transitions
	t.undo, t.approved = c.Undo, c.Approved
	for i, from := range c.Steps {
		s := t.steps[i]
		s.state, s.reason, s.since = from.State, from.Reason, from.Since
		s.attempts, s.retries, s.idle, s.undos = from.Attempts, from.Retries, from.Idle, from.Undos
		s.result, s.proof, s.unverified, s.accepted = from.Result, from.Proof, from.Unverified, from.Accepted
		s.evidence, s.committed, s.looked, s.suspect = from.Evidence, from.Committed, from.Looked, from.Suspect
		s.doubted = from.Doubted
		s.doubt = doubt{kind: doubtKind(from.Doubt), why: from.Reason, horizon: from.Horizon}
		if s.result != nil {
			t.keptBytes += len(s.result.Value)
		}
	}
	if c.Reset {
		t.distrust()
	}
}

// distrust takes over a transaction whose history was rewound by a Temporal reset. Another run may have done anything
// since: every step that this history dispatched is in doubt, every other one is asked about before it is dispatched.
func (t *transaction) distrust() {
	t.notes = append(t.notes, "taken over after a Temporal reset: every owner is asked before anything is done")
	t.approved, t.undo = false, nil
	t.stopping = ""
	if t.state != contract.TxAwaitingStartApproval {
		t.state = contract.TxRunning
	}
	now := workflow.Now(t.ctx)
	for _, s := range t.steps {
		s.accepted, s.resolution = false, nil
		if s.attempts == 0 {
			s.state, s.suspect = contract.StepPending, true
			continue
		}
		s.state, s.reason, s.since = contract.StepInDoubt, "a Temporal reset rewound what was known of it", now
		s.doubt = doubt{kind: suspected, why: s.reason}
		s.doubt.horizon = now.Add(s.tool.Timeout.Std() + s.tool.Settle.Std())
	}
}

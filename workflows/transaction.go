package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// Transaction is the workflow of one consequential multi-step operation. It completes with a Receipt when effects of it
// remain in the world (COMMITTED, RETAINED, PARTIALLY_COMPENSATED), and fails with an error whose details are the
// Receipt when provably none does (FAILED, REJECTED, COMPENSATED).
func Transaction(ctx workflow.Context, start contract.Start) (*contract.Receipt, error) {
	t, err := newTransaction(ctx, start)
	if err != nil {
		return nil, err
	}
	return t.run(t.ctx)
}

// transaction is the state of one run.
type transaction struct {
	// ctx is the main coroutine's, disconnected from the root context: cancelling the workflow is a request to abort,
	// which must not end the waits, looks and compensations that are needed to do so.
	ctx   workflow.Context
	start contract.Start
	tx    contract.TxRef
	// runs are this run and those before it that a decision may name.
	runs []string

	resolved contract.Resolved
	steps    []*step
	byID     map[string]*step
	unknowns int // steps that are UNKNOWN
	state    contract.TxState
	reason   string

	requester   string
	started     time.Time
	ended       time.Time
	notes       []string
	decisions   []contract.Judged
	transitions int

	// stopping says why nothing new is started; "" while everything may be.
	stopping string
	// reset: this run was made by a Temporal reset, and must not act on what it replayed.
	reset bool
	// leaving: the history has grown long; what is in flight settles, then the run continues as a new one. staying:
	// it cannot, because there is more to carry over than Temporal takes.
	leaving, staying bool
	whole            int // what must not be left half done
	// closing: the final state is decided, and no decision can change it.
	closing bool

	// ask is the question that a human is being asked, nil if none.
	ask      *question
	undo     *contract.UndoPlan
	approved bool
	replan   bool // what is there is no longer what was approved
	plans    int
	// ending is the final state that was reached, while the last looks are being made.
	ending contract.TxState

	flight          flight
	keptBytes       int
	arrived, judged int // decisions
	dirty           bool
}

// step is one step with everything that the workflow knows of it.
type step struct {
	index  int
	def    contract.Step
	tool   contract.Tool
	needs  []*step
	needed []*step

	state  contract.StepState
	reason string
	since  time.Time

	attempts int // executions handed to a worker
	retries  int // re-executions after proven absence
	idle     int // dispatches that provably were not executed, since the last one that may have been
	undos    int // compensations handed to a worker

	result     *contract.Kept
	proof      contract.Proof
	unverified bool
	accepted   bool
	evidence   []contract.Evidence

	doubted   bool
	doubt     doubt
	unsettled bool // sent again without asking: doubt is that of the call before
	looked    bool // a look before the first dispatch found nothing
	suspect   bool // another run may have dispatched it
	asserted  bool // a human said that it is absent
	committed time.Time
	undoing   undoing

	running    bool // a coroutine is at work on it
	held       bool // and waits at the gate
	resolution *contract.Decision
}

func newTransaction(root workflow.Context, start contract.Start) (*transaction, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	t := &transaction{
		ctx:       ctx,
		start:     start,
		tx:        contract.TxRef{ID: info.FirstRunID, Run: info.OriginalRunID},
		byID:      map[string]*step{},
		state:     contract.TxRunning,
		requester: start.Requester,
		started:   info.WorkflowStartTime,
	}
	if t.tx.Run == "" { // the SDK's test environment knows one run ID only
		t.tx.ID, t.tx.Run = info.WorkflowExecution.RunID, info.WorkflowExecution.RunID
	}
	t.runs = []string{t.tx.Run}
	if start.Carried != nil {
		// Before anything listens: registering a handler lets those run that wait already.
		t.resume(start.Carried, info.ContinuedExecutionRunID != "")
	}
	if err := workflow.SetQueryHandlerWithOptions(ctx, contract.QuerySnapshot,
		func() (contract.Snapshot, error) { return t.snapshot(), nil },
		workflow.QueryHandlerOptions{Description: "The transaction as it stands."}); err != nil {
		return nil, err
	}
	if err := t.listen(); err != nil {
		return nil, err
	}
	workflow.GoNamed(ctx, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		t.stop("cancelled through Temporal")
	})
	workflow.GoNamed(ctx, "details", t.describe)
	return t, nil
}

// run is the life of a transaction.
func (t *transaction) run(ctx workflow.Context) (*contract.Receipt, error) {
	if t.start.Carried == nil {
		if err := t.begin(ctx); err != nil {
			return nil, err
		}
	}
	if t.asking(askStart) && t.declined(ctx) && !t.suspected() {
		for _, s := range t.steps {
			t.become(s, contract.StepSkipped, "the transaction was not started")
		}
		return t.end(ctx, contract.TxRejected)
	}
	for !t.mustLeave() {
		switch {
		case t.ending != "":
			if t.sweep(ctx) {
				t.ending = ""
			} else if !t.mustLeave() {
				return t.end(ctx, t.ending)
			}
		case t.approved, t.asking(askCompensation):
			t.ending = t.rollback(ctx)
		default:
			if t.forward(ctx) {
				return t.end(ctx, contract.TxCommitted)
			}
			if !t.mustLeave() {
				t.ending = t.rollback(ctx)
			}
		}
	}
	return nil, t.continueAsNew(ctx)
}

// begin asks a worker for the plan, and asks the human that the plan wants to be asked before anything runs.
func (t *transaction) begin(ctx workflow.Context) error {
	for wait := time.Second; ; wait = min(2*wait, 10*time.Minute) {
		err := t.resolve(ctx)
		if err == nil {
			break
		}
		if !t.rewound() {
			return t.invalid(ctx, err)
		}
		// The run that was reset may have done things: it cannot be said that nothing happened.
		t.reason = "taken over after a Temporal reset, and its plan cannot be had: " + message(err)
		t.changed()
		if err := workflow.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	t.reason = ""
	if t.resolved.Definition.Approval.Start == contract.ApprovalRequired {
		t.ask = t.newQuestion(askStart)
	}
	return nil
}

// resolve asks a worker for the plan, with contracts and servers, and pins the answer.
func (t *transaction) resolve(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: time.Minute,
		Summary:                "plan " + t.start.Plan,
	})
	var resolved contract.Resolved
	if err := workflow.ExecuteLocalActivity(ctx, contract.ActivityResolve, t.start).Get(ctx, &resolved); err != nil {
		return err
	}
	var notes []string
	if t.start.Identity == nil {
		notes = append(notes, "started by hand: not compared with earlier transactions of the same intent, "+
			"and its input is readable in the history")
	} else if t.start.Identity.Definition != "" && t.start.Identity.Definition != resolved.Definition.Digest {
		return fmt.Errorf("the worker's manifest has another version of plan %q (%.12s) than the client that started it (%.12s): "+
			"bring both to the same manifest", t.start.Plan, resolved.Definition.Digest, t.start.Identity.Definition)
	}
	t.resolved, t.notes = resolved, append(notes, resolved.Definition.Warnings...)
	return t.plan()
}

// plan makes the steps of the definition.
func (t *transaction) plan() error {
	def := &t.resolved.Definition
	t.steps, t.byID = nil, map[string]*step{}
	for i, d := range def.Steps {
		tool, ok := def.Tools[d.Tool]
		if !ok || t.byID[d.ID] != nil {
			return fmt.Errorf("step %q of plan %q appears twice, or its tool %q has no contract", d.ID, def.Plan, d.Tool)
		}
		s := &step{index: i, def: d, tool: tool, state: contract.StepPending, since: t.started}
		t.steps = append(t.steps, s)
		t.byID[d.ID] = s
	}
	for _, s := range t.steps {
		for _, id := range s.def.Needs {
			need, ok := t.byID[id]
			if !ok {
				return fmt.Errorf("step %q of plan %q needs %q, which is no step", s.def.ID, def.Plan, id)
			}
			s.needs = append(s.needs, need)
			need.needed = append(need.needed, s)
		}
	}
	t.dirty = true
	return nil
}

// declined waits for the human that the plan wants to be asked before anything runs, and tells whether the start was
// declined, aborted or expired.
func (t *transaction) declined(ctx workflow.Context) bool {
	t.enter(contract.TxAwaitingStartApproval, "the plan asks for approval before anything runs")
	q := t.ask
	switch t.answer(ctx) {
	case "", answerApproved:
		return false
	case answerRejected:
		t.stop("the start was " + q.said)
	case answerExpired:
		t.stop("nobody approved the start in time")
	}
	t.reason = t.stopping
	return true
}

// become moves a step to another state, or gives another reason for the one it is in. The table in package contract is
// the law: anything else is a bug, and stops the workflow task until the code is mended, rather than going on from a
// state that cannot be.
func (t *transaction) become(s *step, next contract.StepState, reason string, args ...any) {
	s.reason = cut(fmt.Sprintf(reason, args...), maxReason)
	if s.state != next {
		if !s.state.CanBecome(next) {
			panic(fmt.Sprintf("step %s cannot go from %s to %s", s.def.ID, s.state, next))
		}
		t.set(s, next)
		s.resolution = nil // it was about the state before
	}
	t.changed()
}

// set is the one place where a step's state is written.
func (t *transaction) set(s *step, next contract.StepState) {
	if s.state == contract.StepUnknown {
		t.unknowns--
	}
	if next == contract.StepUnknown {
		t.unknowns++
	}
	s.state, s.since = next, workflow.Now(t.ctx)
}

// enter moves the transaction to another state.
func (t *transaction) enter(next contract.TxState, reason string) {
	if reason = cut(reason, maxReason); t.state != next || t.reason != reason {
		t.state, t.reason = next, reason
		t.changed()
	}
	t.index()
}

// changed notes that there is something new to see, and whether the history has grown long.
func (t *transaction) changed() {
	t.transitions++
	t.dirty = true
	if workflow.GetInfo(t.ctx).GetContinueAsNewSuggested() {
		t.leave()
	}
}

// stop makes the transaction start nothing new, for the first reason that is given.
func (t *transaction) stop(why string) {
	if t.stopping != "" || t.closing {
		return
	}
	t.stopping = cut(why, maxReason)
	if t.state == contract.TxRunning {
		t.reason = t.stopping
	}
	t.changed()
	t.flight.recall(executions)
}

// end closes the transaction.
func (t *transaction) end(ctx workflow.Context, state contract.TxState) (*contract.Receipt, error) {
	t.closing = true
	t.drain(ctx)
	if t.reset || t.rewound() {
		return nil, t.continueAsNew(ctx)
	}
	t.ended = workflow.Now(t.ctx)
	t.enter(state, t.reason)
	t.refresh()
	receipt := t.receipt()
	if state.EffectsRemain() {
		return receipt, nil
	}
	return nil, temporal.NewApplicationErrorWithOptions(t.headline(), string(state), temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Details:      []any{receipt},
		Category:     temporal.ApplicationErrorCategoryBenign,
	})
}

// invalid ends a transaction that cannot start.
func (t *transaction) invalid(ctx workflow.Context, err error) error {
	t.closing = true
	t.drain(ctx)
	t.ended = workflow.Now(t.ctx)
	t.state, t.reason = contract.TxRejected, cut(message(err), maxReason)
	t.changed()
	t.refresh()
	return temporal.NewApplicationErrorWithOptions(t.reason, contract.ErrorStart, temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Details:      []any{t.receipt()},
		Category:     temporal.ApplicationErrorCategoryBenign,
	})
}

// headline is the outcome in one line, for the list of workflows.
func (t *transaction) headline() string {
	if t.reason == "" {
		return string(t.state) + ": " + t.state.Meaning()
	}
	return string(t.state) + ": " + t.reason
}

// message is that of the innermost application error, or the error's own.
func message(err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

package workflows

import (
	"encoding/json"
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
	// ctx is the main coroutine's, disconnected from the root context: cancelling the workflow is a request to abort, which must not end
	// the waits, looks and compensations that are needed to do so.
	ctx   workflow.Context
	start contract.Start
	tx    contract.TxRef

	resolved contract.Resolved
	steps    []*step
	byID     map[string]*step
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
	// leaving: the history has grown long; what is in flight settles, then the run continues as a new one.
	leaving bool

	// ask is the question that a human is being asked, nil if none.
	ask      *question
	undo     *contract.UndoPlan
	approved bool
	plans    int

	flight    flight
	keptBytes int
	judging   int
	dirty     bool
}

// step is one step with everything that the workflow knows of it.
type step struct {
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
	undos    int

	result     *contract.Kept
	proof      contract.Proof
	unverified bool
	accepted   bool
	evidence   []contract.Evidence

	doubted   bool
	doubt     doubt
	looked    bool // a look before the first dispatch found nothing
	suspect   bool // another run may have dispatched it
	committed time.Time

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
	if t.start.Carried != nil {
		t.resume(t.start.Carried)
	} else if err := t.resolve(ctx); err != nil {
		return nil, t.invalid(err)
	}
	if end, err := t.approveStart(ctx); end || err != nil {
		return t.end(ctx, contract.TxRejected, err)
	}
	for {
		if !t.approved {
			t.enter(contract.TxRunning, "")
			if done := t.forward(ctx); t.mustLeave() {
				return nil, t.continueAsNew(ctx)
			} else if done {
				return t.end(ctx, contract.TxCommitted, nil)
			}
		}
		state, again := t.rollback(ctx)
		if t.mustLeave() {
			return nil, t.continueAsNew(ctx)
		}
		if again {
			continue
		}
		if appeared := t.sweep(ctx); t.mustLeave() {
			return nil, t.continueAsNew(ctx)
		} else if appeared {
			continue
		}
		return t.end(ctx, state, nil)
	}
}

// resolve asks a worker for the plan, with contracts and servers, and pins the answer.
func (t *transaction) resolve(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: time.Minute,
		Summary:                "plan " + t.start.Plan,
	})
	if err := workflow.ExecuteLocalActivity(ctx, contract.ActivityResolve, t.start).Get(ctx, &t.resolved); err != nil {
		return err
	}
	if t.start.Identity == nil {
		t.notes = append(t.notes, "started by hand: not compared with earlier transactions of the same intent, "+
			"and its input is readable in the history")
	} else if t.start.Identity.Definition != "" && t.start.Identity.Definition != t.resolved.Definition.Digest {
		return fmt.Errorf("the worker's manifest has another version of plan %q (%.12s) than the client that started it (%.12s): "+
			"bring both to the same manifest", t.start.Plan, t.resolved.Definition.Digest, t.start.Identity.Definition)
	}
	t.notes = append(t.notes, t.resolved.Definition.Warnings...)
	t.plan()
	return nil
}

// plan makes the steps of the definition.
func (t *transaction) plan() {
	def := &t.resolved.Definition
	for _, d := range def.Steps {
		s := &step{def: d, tool: def.Tools[d.Tool], state: contract.StepPending, since: t.started}
		t.steps = append(t.steps, s)
		t.byID[d.ID] = s
	}
	for _, s := range t.steps {
		for _, id := range s.def.Needs {
			need := t.byID[id]
			s.needs = append(s.needs, need)
			need.needed = append(need.needed, s)
		}
	}
	t.dirty = true
}

// approveStart waits for the human that the plan wants to be asked before anything runs. end: the start was declined.
func (t *transaction) approveStart(ctx workflow.Context) (end bool, err error) {
	approval := t.resolved.Definition.Approval
	if approval.Start != contract.ApprovalRequired || t.state != contract.TxRunning && t.state != contract.TxAwaitingStartApproval {
		return false, nil
	}
	if t.start.Carried != nil && t.state == contract.TxRunning {
		return false, nil
	}
	t.enter(contract.TxAwaitingStartApproval, "the plan asks for approval before anything runs")
	answer := t.question(ctx, question{about: askStart, quorum: approval.Quorum, fourEyes: approval.FourEyes}, approval.Expires.Std())
	switch {
	case t.mustLeave():
		return true, t.continueAsNew(ctx)
	case answer == answerApproved:
		return false, nil
	case answer == answerExpired:
		t.reason = "nobody approved the start in time"
	case answer == answerStopped:
		t.reason = t.stopping
	default:
		t.reason = "the start was declined"
	}
	for _, s := range t.steps {
		t.become(s, contract.StepSkipped, "the transaction was not started")
	}
	return true, nil
}

// become moves a step to another state, or gives another reason for the one it is in. The table in package contract is the law: anything else is a bug, and stops
// the workflow task until the code is mended, rather than going on from a state that cannot be.
func (t *transaction) become(s *step, next contract.StepState, reason string, args ...any) {
	if s.state == next {
		s.reason = fmt.Sprintf(reason, args...)
		t.changed()
		return
	}
	if !s.state.CanBecome(next) {
		panic(fmt.Sprintf("step %s cannot go from %s to %s", s.def.ID, s.state, next))
	}
	s.state, s.reason, s.since = next, fmt.Sprintf(reason, args...), workflow.Now(t.ctx)
	t.changed()
}

// enter moves the transaction to another state.
func (t *transaction) enter(next contract.TxState, reason string) {
	if t.state != next || t.reason != reason {
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
		t.leaving = true
	}
}

// stop makes the transaction start nothing new, for the first reason that is given.
func (t *transaction) stop(why string) {
	if t.stopping != "" || t.state.Closed() {
		return
	}
	t.stopping = why
	t.changed()
	t.flight.recall()
}

// mustLeave tells whether this run has to hand over to a new one.
func (t *transaction) mustLeave() bool { return t.reset || t.leaving }

// await waits for a condition. It is the only way to wait for something that is not a call, and ends early where the
// run has to be left.
func (t *transaction) await(ctx workflow.Context, condition func() bool) {
	if err := workflow.Await(ctx, func() bool { return condition() || t.mustLeave() }); err != nil {
		panic(err) // a disconnected context is never cancelled
	}
}

// settle waits until nothing is in flight. Nothing cuts it short: a call that was dispatched is never abandoned.
func (t *transaction) settle(ctx workflow.Context) {
	if err := workflow.Await(ctx, t.idle); err != nil {
		panic(err)
	}
}

// sleepUntil waits for a moment, or until condition holds. It says whether the moment came.
func (t *transaction) sleepUntil(ctx workflow.Context, moment time.Time, summary string, condition func() bool) bool {
	wait := moment.Sub(workflow.Now(t.ctx))
	if wait <= 0 {
		return true
	}
	met, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: summary},
	}, func() bool { return condition() || t.mustLeave() })
	if err != nil {
		panic(err)
	}
	return !met
}

// end closes the transaction.
func (t *transaction) end(ctx workflow.Context, state contract.TxState, err error) (*contract.Receipt, error) {
	if err != nil {
		return nil, err
	}
	// Whoever is being answered gets the answer first.
	if err := workflow.Await(ctx, func() bool { return t.judging == 0 && workflow.AllHandlersFinished(t.ctx) }); err != nil {
		return nil, err
	}
	if t.reset {
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
func (t *transaction) invalid(err error) error {
	reason := err.Error()
	if app := (*temporal.ApplicationError)(nil); asError(err, &app) {
		reason = app.Message()
	}
	t.ended = workflow.Now(t.ctx)
	t.state, t.reason = contract.TxRejected, reason
	t.changed()
	t.refresh()
	return temporal.NewApplicationErrorWithOptions(reason, contract.ErrorStart, temporal.ApplicationErrorOptions{
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

// scope is what a step's templates may refer to.
func (t *transaction) scope(s *step) contract.Scope {
	info := workflow.GetInfo(t.ctx)
	return contract.Scope{
		"input": t.input(),
		"tx": encode(map[string]string{
			"id": t.tx.ID, "plan": t.resolved.Definition.Plan, "workflow": info.WorkflowExecution.ID,
		}),
		"step": encode(struct {
			ID      string `json:"id"`
			Attempt int    `json:"attempt"`
		}{s.def.ID, s.attempts}),
		"steps":  t.results(s),
		"result": s.result.Raw(),
	}
}

// results holds the results of the steps that s needs: {"database": {"result": …}}.
func (t *transaction) results(s *step) json.RawMessage {
	results := map[string]map[string]json.RawMessage{}
	for _, need := range s.needs {
		results[need.def.ID] = map[string]json.RawMessage{"result": need.result.Raw()}
	}
	return encode(results)
}

func (t *transaction) input() json.RawMessage {
	if len(t.resolved.Input) > 0 {
		return t.resolved.Input
	}
	if len(t.start.Input) > 0 {
		return t.start.Input
	}
	return json.RawMessage("{}")
}

// args are the step's arguments, as they were dispatched: templates, input and results are pinned, so that filling
// them again gives the same.
func (t *transaction) args(s *step) (json.RawMessage, error) {
	return s.def.Args.Fill(t.scope(s))
}

// encode writes plain data as JSON; encoding/json sorts the keys of maps, so the text is deterministic.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/workflows"
)

// testingT is what the world needs of a test: *testing.T and *rapid.T have it.
type testingT interface {
	require.TestingT
	Helper()
}

// world simulates the owners of the resources: naive ones, with which calling twice makes two things. What each call
// does is scripted; what is true is kept in effects. Time is that of the SDK's test environment, which skips waits.
type world struct {
	env   *testsuite.TestWorkflowEnvironment
	start contract.Start
	began time.Time

	mu      sync.Mutex
	def     contract.Definition
	effects map[string][]effect // by step
	made    map[string]int      // effects ever made, by step
	pending []change            // what will happen by itself
	script  map[string][]string // by "execute:step", "inspect:step", "compensate:step": what the next calls do
	log     []string            // every call that reached an owner
	times   []time.Time         // when, for each of them
	seen    []contract.Call     // every mutating call that reached an owner
	looked  []contract.Inspection
	flying  load
	most    load

	run     string        // the run that activities find themselves in
	resetAt int           // the call at which that becomes another one; 0: never
	leaveAt []int         // the calls at which Temporal finds the history long
	total   int           // calls so far
	gap     time.Duration // between two looks of a human
	late    bool          // the transaction has ended: no call may come any more

	resolving func()                  // what happens while the plan is being had
	opened    func(contract.Start)    // at the start of every run
	human     func(contract.Snapshot) // looks at the transaction all the time
	executing func(contract.Call)     // looks at every execution that reaches an owner
	undoing   func(contract.Call)     // and at every compensation
	begun     map[string]int          // calls that may yet have an effect, by step
	doubled   map[string]bool         // steps of which two effects existed at the same time
	watches   []*watch
	moments   []*moment
	runs      []contract.Start // the starts of the runs so far
	states    []string         // states of the transaction, in the order in which they were seen
}

// effect is a resource: who made it, under which id, and from when on the inspector shows it.
type effect struct {
	tx, id  string
	visible time.Time
}

// change happens to the world at a moment.
type change struct {
	at   time.Time
	step string // the step of which an effect appears, if one does
	do   func()
}

// load is what is in flight at a time.
type load struct{ calls, bytes int }

// watch does something as soon as the transaction looks like something.
type watch struct {
	sees func(contract.Snapshot) bool
	do   func(contract.Snapshot)
	done bool
}

// moment does something some time after the start.
type moment struct {
	after time.Duration
	do    func()
	done  bool
}

const testRun = "default-test-run-id"

func newWorld(t testingT, def contract.Definition) *world {
	t.Helper()
	w := &world{
		def: def, effects: map[string][]effect{}, doubled: map[string]bool{}, begun: map[string]int{}, made: map[string]int{}, script: map[string][]string{}, gap: time.Millisecond,
		start: contract.Start{
			Plan: def.Plan, Input: json.RawMessage(`{"workspace":"acme"}`), Requester: "agent", Identity: &contract.Identity{},
		},
	}
	w.open()
	return w
}

// open makes the environment of the next run; time goes on.
func (w *world) open() {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	next := suite.NewTestWorkflowEnvironment()
	next.SetTestTimeout(time.Minute)
	next.SetWorkflowRunTimeout(100 * 365 * 24 * time.Hour)
	if w.env != nil {
		next.SetStartTime(w.env.Now())
		next.SetContinuedExecutionRunID(testRun)
	}
	w.mu.Lock()
	w.env, w.run, w.begun = next, testRun, map[string]int{}
	w.mu.Unlock()
	if w.began.IsZero() {
		w.began = next.Now()
	}
	next.RegisterWorkflowWithOptions(workflows.Transaction, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	register := func(name string, fn any) {
		next.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	register(contract.ActivityResolve, func(context.Context, contract.Start) (contract.Resolved, error) {
		if w.resolving != nil {
			w.resolving()
		}
		return contract.Resolved{Definition: w.def}, nil
	})
	register(contract.ActivityGeneration, func(context.Context) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.run, nil
	})
	// A call that had not begun when it was recalled, or when its run ended, is not made; the test environment makes it
	// all the same.
	recalled := map[string]bool{}
	next.SetOnActivityCanceledListener(func(info *activity.Info) {
		w.mu.Lock()
		defer w.mu.Unlock()
		recalled[info.ActivityID] = true
	})
	mutation := func(call func(context.Context, contract.Call) (contract.Outcome, error)) any {
		return func(ctx context.Context, c contract.Call) (contract.Outcome, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.env != next || recalled[activity.GetInfo(ctx).ActivityID] {
				return contract.Outcome{Kind: contract.NotExecuted}, nil
			}
			return call(ctx, c)
		}
	}
	register(contract.ActivityExecute, mutation(w.execute))
	register(contract.ActivityInspect, w.inspect)
	register(contract.ActivityCompensate, mutation(w.compensate))
	w.poll(next)
	for _, m := range w.moments {
		if !m.done {
			w.arm(m)
		}
	}
}

// poll looks at the transaction, more and more seldom while nothing happens.
func (w *world) poll(env *testsuite.TestWorkflowEnvironment) {
	wait, seen := w.gap, 0
	var again func()
	again = func() {
		if env.IsWorkflowCompleted() {
			return
		}
		wait += wait / 8
		if snapshot, err := w.snapshot(); err == nil {
			if snapshot.Transitions != seen {
				seen, wait = snapshot.Transitions, w.gap
			}
			if n := len(w.states); n == 0 || w.states[n-1] != string(snapshot.State) {
				w.states = append(w.states, string(snapshot.State))
			}
			if w.human != nil {
				w.human(snapshot)
			}
			for _, each := range w.watches {
				if !each.done && each.sees(snapshot) {
					each.done = true
					each.do(snapshot)
				}
			}
		}
		env.RegisterDelayedCallback(again, wait)
	}
	env.RegisterDelayedCallback(again, wait)
}

func (w *world) arm(m *moment) {
	env := w.env
	env.RegisterDelayedCallback(func() {
		if !m.done && !env.IsWorkflowCompleted() {
			m.done = true
			m.do()
		}
	}, max(time.Microsecond, w.began.Add(m.after).Sub(env.Now())))
}

// at does something some time after the start.
func (w *world) at(after time.Duration, do func()) {
	m := &moment{after: after, do: do}
	w.moments = append(w.moments, m)
	w.arm(m)
}

// sees does something as soon as the transaction looks like something, once.
func (w *world) sees(what func(contract.Snapshot) bool, do func(contract.Snapshot)) {
	w.watches = append(w.watches, &watch{sees: what, do: do})
}

// when does something as soon as the transaction is in a state, once.
func (w *world) when(state contract.TxState, do func(contract.Snapshot)) {
	w.sees(func(s contract.Snapshot) bool {
		return s.State == state && (state != contract.TxAwaitingCompensationApproval || s.Undo != nil)
	}, do)
}

// whenStep does something as soon as a step is in a state, once.
func (w *world) whenStep(id string, state contract.StepState, do func(contract.Snapshot)) {
	w.sees(func(s contract.Snapshot) bool {
		step, _ := s.Step(id)
		return step.State == state
	}, do)
}

// begin is what every call does first: time passes for the world, too.
func (w *world) begin() {
	w.happen(w.env.Now())
	w.total++
	if slices.Contains(w.leaveAt, w.total) {
		env := w.env
		env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, 0)
	}
	if w.total == w.resetAt {
		w.run = "the run that was reset"
	}
}

// happen lets happen what happens by itself until a moment.
func (w *world) happen(until time.Time) {
	slices.SortStableFunc(w.pending, func(a, b change) int { return a.at.Compare(b.at) })
	for len(w.pending) > 0 && !w.pending[0].at.After(until) {
		do := w.pending[0].do
		w.pending = w.pending[1:]
		do()
	}
}

func (w *world) note(kind contract.CallKind, step string) {
	w.log = append(w.log, string(kind)+" "+step)
	w.times = append(w.times, w.env.Now())
	if w.late {
		w.log = append(w.log, "too late")
	}
}

// executions counts how often a step reached its owner.
func (w *world) executions(step string) int { return w.count("execute " + step) }

func (w *world) count(entry string) int {
	n := 0
	for _, line := range w.log {
		if line == entry {
			n++
		}
	}
	return n
}

// calls returns the calls of one kind, in order.
func (w *world) calls(kind contract.CallKind) []string {
	var steps []string
	for _, line := range w.log {
		if step, ok := strings.CutPrefix(line, string(kind)+" "); ok {
			steps = append(steps, step)
		}
	}
	return steps
}

// existing lists what exists, by step.
func (w *world) existing() []string {
	var steps []string
	for step, effects := range w.effects {
		for range effects {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps
}

// transact runs the transaction to its end, over all its runs, and returns its receipt.
func (w *world) transact(t testingT) contract.Receipt {
	t.Helper()
	for start := w.start; ; w.open() {
		w.runs = append(w.runs, start)
		if w.opened != nil {
			w.opened(start)
		}
		require.Less(t, len(w.runs), 100, "the transaction goes round in circles")
		w.env.ExecuteWorkflow(contract.WorkflowTransaction, start)
		require.True(t, w.env.IsWorkflowCompleted(), "the transaction did not end")
		var next *workflow.ContinueAsNewError
		if !errors.As(w.env.GetWorkflowError(), &next) {
			break
		}
		start = contract.Start{}
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &start))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = true
	return w.receipt(t)
}

func (w *world) receipt(t testingT) contract.Receipt {
	t.Helper()
	var receipt contract.Receipt
	err := w.env.GetWorkflowError()
	if err == nil {
		require.NoError(t, w.env.GetWorkflowResult(&receipt))
		require.True(t, receipt.State.EffectsRemain(), "%s completed", receipt.State)
		return receipt
	}
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.HasDetails(), "%v", err)
	require.NoError(t, app.Details(&receipt))
	require.False(t, receipt.State.EffectsRemain(), "%s failed", receipt.State)
	require.Equal(t, app.Type(), string(receipt.State), "the error's type is the state")
	return receipt
}

func (w *world) snapshot() (contract.Snapshot, error) {
	var snapshot contract.Snapshot
	value, err := w.env.QueryWorkflow(contract.QuerySnapshot)
	if err != nil {
		return snapshot, err
	}
	return snapshot, value.Get(&snapshot)
}

func (w *world) signal(name string, payload any) { w.env.SignalWorkflow(name, payload) }

// approveRollback approves the first undo plan that is published.
func (w *world) approveRollback() { w.approveNext("alice") }

// approveNext approves the next undo plan that is published and that has not been approved by this world.
func (w *world) approveNext(by string) {
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: by, Digest: s.Undo.Digest})
	})
}

// approvePlan approves the undo plan of that number.
func (w *world) approvePlan(version int) {
	w.sees(func(s contract.Snapshot) bool {
		return s.State == contract.TxAwaitingCompensationApproval && s.Undo != nil && s.Undo.Version == version
	}, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
}

func states(receipt contract.Receipt) map[string]contract.StepState {
	found := map[string]contract.StepState{}
	for _, s := range receipt.Steps {
		found[s.ID] = s.State
	}
	return found
}

// decisions lists what was decided: "signal: accepted" or "signal: why not".
func decisions(receipt contract.Receipt) []string {
	var all []string
	for _, d := range receipt.Decisions {
		word := "accepted"
		if !d.Accepted {
			word = d.Why
		}
		all = append(all, d.Signal+": "+word)
	}
	return all
}

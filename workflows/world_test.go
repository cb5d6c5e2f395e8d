package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
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

// next takes the next word of the script for a call, "" when it is used up; "word@2s" answers after two seconds.
func (w *world) next(kind contract.CallKind, step string) (word string, delay time.Duration) {
	key := string(kind) + ":" + step
	words := w.script[key]
	if len(words) == 0 {
		return "", 0
	}
	w.script[key] = words[1:]
	word, after, _ := strings.Cut(words[0], "@")
	if after != "" {
		var err error
		if delay, err = time.ParseDuration(after); err != nil {
			panic(err)
		}
	}
	return word, delay
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

// create makes an effect, and gives its id. Reads have none, and what is idempotent has one.
func (w *world) create(step, tx string) string {
	return w.createShownAfter(step, tx, 0)
}

// createShownAfter makes an effect that the inspector shows later.
func (w *world) createShownAfter(step, tx string, lag time.Duration) string {
	own := w.own(step, tx)
	switch risk := w.tool(step).Risk; {
	case risk == contract.RiskReadOnly:
		return step + "-read"
	case risk == contract.RiskIdempotent && len(own) > 0:
		return own[0].id
	}
	w.doubled[step] = w.doubled[step] || len(own) > 0
	w.made[step]++
	id := step + "-" + strconv.Itoa(w.made[step])
	w.effects[step] = append(w.effects[step], effect{tx, id, w.env.Now().Add(lag)})
	return id
}

// own are the effects of a step that a transaction made.
func (w *world) own(step, tx string) []effect {
	var own []effect
	for _, e := range w.effects[step] {
		if e.tx == tx {
			own = append(own, e)
		}
	}
	return own
}

// remove removes an effect by its id.
func (w *world) remove(step, id string) bool {
	before := len(w.effects[step])
	w.effects[step] = slices.DeleteFunc(w.effects[step], func(e effect) bool { return e.id == id })
	return len(w.effects[step]) < before
}

func (w *world) after(wait time.Duration, appears string, do func()) {
	w.pending = append(w.pending, change{w.env.Now().Add(wait), appears, do})
}

func withID(id string) *contract.Kept {
	return contract.Keep(json.RawMessage(`{"id":"`+id+`"}`), nil, contract.ResultLimit)
}

// reply hands over an answer, now or after a while; appears is the step of which an effect may come with it.
func reply[T any](ctx context.Context, w *world, appears string, size int, delay time.Duration, answer func() (T, error)) (T, error) {
	w.flying.calls++
	w.flying.bytes += size
	w.most.calls, w.most.bytes = max(w.most.calls, w.flying.calls), max(w.most.bytes, w.flying.bytes)
	land := func() {
		w.flying.calls--
		w.flying.bytes -= size
	}
	if delay == 0 {
		land()
		return answer()
	}
	env, token := w.env, activity.GetInfo(ctx).TaskToken
	w.begun[appears]++
	env.RegisterDelayedCallback(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.happen(env.Now())
		w.begun[appears]--
		land()
		result, err := answer()
		if err := env.CompleteActivity(token, result, err); err != nil {
			panic(err)
		}
	}, delay)
	var none T
	return none, activity.ErrResultPending
}

func (w *world) execute(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	w.begin()
	out := contract.Outcome{
		WriteDeadline: w.env.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallExecute, Attempt: call.Attempt, Tool: call.Tool},
	}
	if call.Tx.Run != w.run {
		out.Kind = contract.Reset
		return out, nil
	}
	word, delay := w.next(contract.CallExecute, call.Step)
	if word == "garbage" { // an answer that is none
		w.note(contract.CallExecute, call.Step)
		if err := w.env.CompleteActivity(activity.GetInfo(ctx).TaskToken, "no outcome", nil); err != nil {
			return out, err
		}
		return out, activity.ErrResultPending
	}
	return reply(ctx, w, call.Step, len(call.Args), delay, func() (contract.Outcome, error) {
		if word != "idle" && word != "no-worker" && word != "recalled" {
			w.note(contract.CallExecute, call.Step)
			w.seen = append(w.seen, call)
			if w.executing != nil {
				w.executing(call)
			}
		}
		commit := func() string { return w.create(call.Step, call.Tx.ID) }
		switch word {
		case "":
			out.Kind, out.Result = contract.Acknowledged, withID(commit())
		case "shown-later":
			lag := w.tool(call.Step).Settle.Std() - time.Second
			out.Kind, out.Result = contract.Acknowledged, withID(w.createShownAfter(call.Step, call.Tx.ID, lag))
		case "lost-shown-later":
			w.createShownAfter(call.Step, call.Tx.ID, w.tool(call.Step).Settle.Std()-time.Second)
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "idle":
			out.Kind, out.Why = contract.NotExecuted, "connection refused"
		case "refuse":
			out.Kind, out.Why = contract.Refused, "REJECTED: no"
		case "refuse-but-commit":
			commit()
			out.Kind, out.Why = contract.Refused, "REJECTED: no"
		case "error":
			out.Kind, out.Why, out.Answered = contract.Unknown, "fetch failed", true
		case "error-after":
			commit()
			out.Kind, out.Why, out.Answered = contract.Unknown, "fetch failed", true
		case "error-late":
			out.Kind, out.Why, out.Answered = contract.Unknown, "fetch failed", true
			w.after(w.tool(call.Step).Settle.Std()-time.Second, call.Step, func() { commit() })
		case "lost-before":
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "lost-after":
			commit()
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "late":
			out.Kind, out.Why = contract.Unknown, "no answer in time"
			w.after(call.Timeout.Std()+time.Second, call.Step, func() { commit() })
		case "too-late": // an owner that takes longer than it promised
			out.Kind, out.Why = contract.Unknown, "no answer in time"
			w.after(call.Timeout.Std()+w.tool(call.Step).Settle.Std()+time.Second, call.Step, func() { commit() })
		case "crash":
			return out, errors.New("worker died")
		case "crash-after":
			commit()
			return out, errors.New("worker died")
		case "crash-late":
			w.after(call.Timeout.Std()+time.Second, call.Step, func() { commit() })
			return out, errors.New("worker died")
		case "fatal":
			return out, temporal.NewNonRetryableApplicationError("no such thing", "Fatal", nil)
		case "panic":
			panic("a bug")
		case "timeout-after":
			commit()
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
		case "timeout-late":
			w.after(w.tool(call.Step).Settle.Std()-time.Second, call.Step, func() { commit() })
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
		case "heartbeat":
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil)
		case "no-worker":
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		case "recalled":
			return out, temporal.NewCanceledError()
		default:
			return out, temporal.NewNonRetryableApplicationError("unknown word "+word, "Script", nil)
		}
		return out, nil
	})
}

func (w *world) tool(step string) contract.Tool {
	for _, s := range w.def.Steps {
		if s.ID == step {
			return w.def.Tools[s.Tool]
		}
	}
	panic("no step " + step)
}

// find is what the inspector of a step finds: by the transaction's id, by the id in its own result, or whatever is
// there.
func (w *world) find(request contract.Inspection) (effect, bool) {
	var result struct{ ID string }
	_ = json.Unmarshal(request.Result, &result)
	proves := w.tool(request.Step).Inspect.Proves
	i := slices.IndexFunc(w.effects[request.Step], func(e effect) bool {
		switch {
		case e.visible.After(w.env.Now()):
			return false
		case slices.Contains(proves, contract.ProofTx):
			return e.tx == request.Tx.ID
		case slices.Contains(proves, contract.ProofResult) && result.ID != "":
			return e.id == result.ID
		}
		return true
	})
	if i < 0 {
		return effect{}, false
	}
	return w.effects[request.Step][i], true
}

func (w *world) inspect(ctx context.Context, request contract.Inspection) (contract.Look, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	word, delay := w.next(contract.CallInspect, request.Step)
	return reply(ctx, w, "", len(request.Args)+len(request.Query), delay, func() (contract.Look, error) {
		w.note(contract.CallInspect, request.Step)
		w.looked = append(w.looked, request)
		found, there := w.find(request)
		look := contract.Look{Evidence: contract.Evidence{Call: contract.CallInspect, Tool: request.Tool}}
		switch {
		case word == "fail":
			look.Verdict, look.Why = contract.Inconclusive, "the inspector is down"
		case word == "crash":
			return look, temporal.NewNonRetryableApplicationError("the inspector crashed", "Crash", nil)
		case word == "stale" || !there:
			look.Verdict = contract.Absent
		default:
			look.Verdict, look.Result = contract.Present, withID(found.id)
		}
		look.Evidence.Said = string(look.Verdict)
		return look, nil
	})
}

func (w *world) compensate(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	w.begin()
	out := contract.Outcome{
		WriteDeadline: w.env.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallCompensate, Attempt: call.Attempt, Tool: call.Tool},
	}
	if call.Tx.Run != w.run {
		out.Kind = contract.Reset
		return out, nil
	}
	word, delay := w.next(contract.CallCompensate, call.Step)
	return reply(ctx, w, "", len(call.Args), delay, func() (contract.Outcome, error) {
		if word != "idle" && word != "no-worker" {
			w.note(contract.CallCompensate, call.Step)
			w.seen = append(w.seen, call)
			if w.undoing != nil {
				w.undoing(call)
			}
		}
		var args struct{ ID string }
		_ = json.Unmarshal(call.Args, &args)
		settle := w.tool(call.Step).Compensate.Settle.Std()
		switch word {
		case "":
			w.remove(call.Step, args.ID)
			out.Kind = contract.Acknowledged
		case "lie":
			out.Kind = contract.Acknowledged
		case "slow": // acknowledged first, done later
			out.Kind = contract.Acknowledged
			w.after(settle-time.Second, "", func() { w.remove(call.Step, args.ID) })
		case "late": // no answer, and done later
			out.Kind, out.Why = contract.Unknown, "no answer in time"
			w.after(call.Timeout.Std()+settle-time.Second, "", func() { w.remove(call.Step, args.ID) })
		case "idle":
			out.Kind, out.Why = contract.NotExecuted, "connection refused"
		case "no-worker":
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		case "lost-after":
			w.remove(call.Step, args.ID)
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "lost-before":
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "error":
			out.Kind, out.Why, out.Answered = contract.Unknown, "internal", true
		case "error-after":
			w.remove(call.Step, args.ID)
			out.Kind, out.Why, out.Answered = contract.Unknown, "internal", true
		case "refuse":
			out.Kind, out.Why = contract.Refused, "FORBIDDEN: no"
		case "crash":
			return out, errors.New("worker died")
		default:
			return out, temporal.NewNonRetryableApplicationError("unknown word "+word, "Script", nil)
		}
		return out, nil
	})
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

// chain is a plan of steps that each need the one before.
func chain(ids ...string) contract.Definition {
	var steps []contract.Step
	for i, id := range ids {
		s := contract.Step{ID: id}
		if i > 0 {
			s.Needs = []string{ids[i-1]}
			s.Args = contract.Template(fmt.Sprintf(`{"on":"${steps.%s.result.id}"}`, ids[i-1]))
		}
		steps = append(steps, s)
	}
	return plan(steps...)
}

// diamond is a plan of four steps: top, then left and right at the same time, then bottom.
func diamond() contract.Definition {
	return plan(contract.Step{ID: "top"}, contract.Step{ID: "left", Needs: []string{"top"}},
		contract.Step{ID: "right", Needs: []string{"top"}}, contract.Step{ID: "bottom", Needs: []string{"left", "right"}})
}

// parallel is a plan of steps that need nothing.
func parallel(ids ...string) contract.Definition {
	var steps []contract.Step
	for _, id := range ids {
		steps = append(steps, contract.Step{ID: id})
	}
	return plan(steps...)
}

// plan completes steps with contracts of their own: inspected by tx.id, compensated by the result's id.
func plan(steps ...contract.Step) contract.Definition {
	def := contract.Definition{
		Plan: "test", Digest: "d", Tools: map[string]contract.Tool{},
		Servers:  map[string]contract.ServerRef{"owner": {Name: "owner", ID: "0123abcd"}},
		Approval: contract.Approval{Quorum: 1, Expires: contract.Duration(72 * time.Hour)},
		TTL:      contract.Duration(time.Hour),
	}
	for _, s := range steps {
		s.Tool = "owner/create_" + s.ID
		s.Keep = []string{"id"}
		def.Tools[s.Tool] = contract.Tool{
			Server: "owner", Name: "create_" + s.ID, Risk: contract.RiskCritical,
			Timeout: contract.Duration(5 * time.Second), Settle: contract.Duration(4 * time.Second), Retries: 2,
			Inspect: &contract.Inspect{
				Server: "owner", Tool: "get_" + s.ID, Args: contract.Template(`{"name":"x"}`), Present: "p", Absent: "a",
				Proves: []contract.Proof{contract.ProofTx}, Timeout: contract.Duration(5 * time.Second),
			},
			Compensate: &contract.Compensate{
				Server: "owner", Tool: "delete_" + s.ID, Args: contract.Template(`{"id":"${result.id}"}`),
				Timeout: contract.Duration(5 * time.Second), Settle: contract.Duration(4 * time.Second), Retries: 3,
			},
		}
		def.Steps = append(def.Steps, s)
	}
	return def
}

// with changes the contract of a step.
func with(def contract.Definition, step string, change func(*contract.Tool)) contract.Definition {
	for _, s := range def.Steps {
		if s.ID == step {
			tool := def.Tools[s.Tool]
			change(&tool)
			def.Tools[s.Tool] = tool
		}
	}
	return def
}

// with changes of a contract that tests use.
var (
	uninspected = func(c *contract.Tool) { c.Inspect, c.Compensate = nil, nil }
	permanent   = func(c *contract.Tool) { c.Compensate = nil }
	readOnly    = func(c *contract.Tool) { c.Risk, c.Inspect, c.Compensate = contract.RiskReadOnly, nil, nil }
	idempotent  = func(c *contract.Tool) { c.Risk, c.Inspect, c.Compensate = contract.RiskIdempotent, nil, nil }
	unproven    = func(c *contract.Tool) { c.Inspect.Proves = nil }
)

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

package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// Budgets of one transaction. Temporal keeps at most 4 MiB in one message and 2,000 pending activities: calls beyond
// these wait for their turn.
const (
	maxCalls = 32
	maxBytes = 1 << 20
)

// grace is how much longer than its write deadline an attempt may take to say what it knows.
const grace = 2 * time.Second

// Inspections only read: Temporal itself tries them again where they fail.
var inspectRetries = temporal.RetryPolicy{
	InitialInterval:    100 * time.Millisecond,
	BackoffCoefficient: 2,
	MaximumInterval:    5 * time.Second,
	MaximumAttempts:    contract.InspectAttempts,
}

// maxCall bounds what one call may carry: Temporal refuses values above 2 MiB.
const maxCall = 1792 << 10

// fits tells whether values can be handed to one call.
func fits(values ...json.RawMessage) error {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	if size > maxCall {
		return fmt.Errorf("it would carry %d bytes, at most %d are possible", size, maxCall)
	}
	return nil
}

// recallable says which calls are recalled: those that execute, where nothing new may be executed; every one, where the
// run has to be left.
type recallable int

const (
	executions recallable = iota
	everything
)

// flight counts what is in flight, and can recall what no worker has begun.
type flight struct {
	calls, bytes int
	aboard       []*passenger
}

// passenger is a call in flight that can be recalled.
type passenger struct {
	kind   contract.CallKind
	cancel workflow.CancelFunc
}

// board waits for a place, and gives the context in which the call is made and the function that leaves the place.
func (t *transaction) board(ctx workflow.Context, kind contract.CallKind, size int) (workflow.Context, func()) {
	f := &t.flight
	free := func() bool { return f.calls < maxCalls && (f.calls == 0 || f.bytes+size <= maxBytes) }
	if !free() {
		wait(ctx, free)
	}
	f.calls++
	f.bytes += size
	ctx, cancel := workflow.WithCancel(ctx)
	me := &passenger{kind: kind, cancel: cancel}
	f.aboard = append(f.aboard, me)
	return ctx, func() {
		f.calls--
		f.bytes -= size
		f.aboard = slices.DeleteFunc(f.aboard, func(p *passenger) bool { return p == me })
	}
}

// recall cancels calls that no worker has begun. Mutations that were begun go on: they are never abandoned.
func (f *flight) recall(which recallable) {
	for _, p := range slices.Clone(f.aboard) {
		if which == everything || p.kind == contract.CallExecute {
			p.cancel()
		}
	}
}

// callExecute executes a step once.
func (t *transaction) callExecute(ctx workflow.Context, s *step, args json.RawMessage) contract.Outcome {
	callCtx, leave := t.board(ctx, contract.CallExecute, len(args))
	defer leave()
	if t.await(ctx, t.allJudged); !t.open(s) {
		return contract.Outcome{Kind: contract.NotExecuted, Why: "recalled before it was dispatched"}
	}
	left, limited := t.timeLeft(s)
	if limited && left <= 0 {
		return contract.Outcome{Kind: contract.NotExecuted, Why: "too late"}
	}
	return t.mutate(callCtx, contract.ActivityExecute, contract.CallExecute, max(left, 0), contract.Call{
		Tx:            t.tx,
		Server:        t.resolved.Definition.Servers[s.tool.Server],
		Step:          s.def.ID,
		Attempt:       s.attempts,
		Tool:          s.tool.Name,
		Args:          args,
		Timeout:       s.tool.Timeout,
		Refuse:        s.tool.Refuse,
		TrustRefusals: s.tool.TrustRefusals,
		Keep:          s.def.Keep,
	})
}

// callCompensate undoes a step once.
func (t *transaction) callCompensate(ctx workflow.Context, s *step, args json.RawMessage) contract.Outcome {
	ctx, leave := t.board(ctx, contract.CallCompensate, len(args))
	defer leave()
	if t.mustLeave() {
		return contract.Outcome{Kind: contract.NotExecuted, Why: "recalled before it was dispatched"}
	}
	undo := s.tool.Compensate
	return t.mutate(ctx, contract.ActivityCompensate, contract.CallCompensate, 0, contract.Call{
		Tx:      t.tx,
		Server:  t.resolved.Definition.Servers[undo.Server],
		Step:    s.def.ID,
		Attempt: s.undos,
		Tool:    undo.Tool,
		Args:    args,
		Timeout: undo.Timeout,
	})
}

// mutate makes one mutating call, which a worker has to begin within the time left; 0: whenever it can. Temporal never
// repeats it: whether it may be sent again is decided by looking.
func (t *transaction) mutate(ctx workflow.Context, activity string, kind contract.CallKind, left time.Duration, call contract.Call) contract.Outcome {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              call.Server.Queue(),
		ScheduleToStartTimeout: left,
		StartToCloseTimeout:    call.Timeout.Std() + grace,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		WaitForCancellation:    true,
		Summary:                summary(call.Step, call.Server, call.Tool),
	})
	asked := workflow.Now(t.ctx)
	var out contract.Outcome
	if err := workflow.ExecuteActivity(ctx, activity, call).Get(ctx, &out); err != nil {
		out = fromTemporal(err, workflow.Now(t.ctx), call.Timeout.Std())
		out.Evidence = contract.Evidence{
			Call: kind, Attempt: call.Attempt, Tool: call.Tool, Said: string(out.Kind), Why: out.Why,
			At: asked, Took: contract.Duration(workflow.Now(t.ctx).Sub(asked)), By: "Temporal",
		}
	}
	return out
}

// fromTemporal is what Temporal's own error says about a mutating call at most once dispatched. Only two errors prove
// that no worker ever had it: a schedule-to-start timeout, and a cancellation before the start. Everything else is in
// doubt.
func fromTemporal(err error, now time.Time, timeout time.Duration) contract.Outcome {
	var activity *temporal.ActivityError
	var timedOut *temporal.TimeoutError
	switch {
	case errors.As(err, &timedOut) && timedOut.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return contract.Outcome{Kind: contract.NotExecuted, Why: "no worker took it in time"}
	case temporal.IsCanceledError(err) && errors.As(err, &activity) && activity.StartedEventID() == 0:
		return contract.Outcome{Kind: contract.NotExecuted, Why: "recalled before a worker began it"}
	case errors.As(err, &timedOut):
		// The attempt began before now - timeout - grace, so its write deadline has passed.
		return contract.Outcome{Kind: contract.Unknown, WriteDeadline: now,
			Why: fmt.Sprintf("no word from the worker that had it (%s)", timedOut.TimeoutType())}
	default:
		return contract.Outcome{Kind: contract.Unknown, WriteDeadline: now.Add(timeout),
			Why: "the worker that had it failed: " + message(err)}
	}
}

// inspect asks the owner of a step what is there.
func (t *transaction) inspect(ctx workflow.Context, s *step, args json.RawMessage) contract.Look {
	how := s.tool.Inspect
	scope := t.scope(s)
	scope["args"] = args
	asked := workflow.Now(t.ctx)
	query, err := t.fill(s, how.Args, scope)
	if err == nil {
		err = fits(query, args, s.result.Raw())
	}
	if err != nil {
		return t.lookFailed(s, "it cannot be asked: "+err.Error(), asked)
	}
	server := t.resolved.Definition.Servers[how.Server]
	request := contract.Inspection{
		Tx: t.tx, Server: server, Step: s.def.ID, Attempt: s.attempts,
		Tool: how.Tool, Query: query, Timeout: how.Timeout,
		Present: how.Present, Absent: how.Absent, Map: how.Result, Keep: s.def.Keep,
		Args: args, Result: s.result.Raw(),
	}
	ctx, leave := t.board(ctx, contract.CallInspect, len(query)+len(args)+len(request.Result))
	defer leave()
	if t.mustLeave() {
		return contract.Look{Verdict: contract.Inconclusive, Why: "the run is being left"}
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           server.Queue(),
		StartToCloseTimeout: how.Timeout.Std() + grace,
		RetryPolicy:         &inspectRetries,
		Summary:             summary(s.def.ID, server, how.Tool),
	})
	var look contract.Look
	if err := workflow.ExecuteActivity(ctx, contract.ActivityInspect, request).Get(ctx, &look); err != nil {
		return t.lookFailed(s, "the inspector failed: "+message(err), asked)
	}
	if look.Late != nil {
		t.record(s, *look.Late)
	}
	t.record(s, look.Evidence)
	return look
}

func (t *transaction) lookFailed(s *step, why string, asked time.Time) contract.Look {
	look := contract.Look{Verdict: contract.Inconclusive, Why: why, Evidence: contract.Evidence{
		Call: contract.CallInspect, Attempt: s.attempts, Tool: s.tool.Inspect.Tool, Said: string(contract.Inconclusive),
		Why: why, At: asked, Took: contract.Duration(workflow.Now(t.ctx).Sub(asked)), By: "Temporal",
	}}
	t.record(s, look.Evidence)
	return look
}

// summary is what Temporal's UI shows of a call: names only, never arguments.
func summary(step string, server contract.ServerRef, tool string) string {
	return step + ": " + server.Name + "/" + tool
}

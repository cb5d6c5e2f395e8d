package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/toolclient"
)

// Activities are what a worker can do.
type Activities struct {
	// Manifest answers starts; Pool reaches the servers.
	Manifest *manifest.Manifest
	Pool     *toolclient.Pool
	// Worker names this process in evidence.
	Worker string
	// SearchAttributes tells whether MCPx's search attributes are registered in the namespace.
	SearchAttributes bool
	// Now is the wall clock; nil for the system's. Write deadlines are compared with it.
	Now func() time.Time
}

// RegisterControl registers the activities that belong to the workflows' queue.
func (a *Activities) RegisterControl(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(a.Resolve, activity.RegisterOptions{Name: contract.ActivityResolve})
	r.RegisterActivityWithOptions(a.Generation, activity.RegisterOptions{Name: contract.ActivityGeneration})
}

// RegisterCalls registers the activities that belong to the queue of a server.
func (a *Activities) RegisterCalls(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(a.Execute, activity.RegisterOptions{Name: contract.ActivityExecute})
	r.RegisterActivityWithOptions(a.Inspect, activity.RegisterOptions{Name: contract.ActivityInspect})
	r.RegisterActivityWithOptions(a.Compensate, activity.RegisterOptions{Name: contract.ActivityCompensate})
}

// Resolve finds the plan of a start in this worker's manifest, checks the input against its schema, and answers with
// the plan, its contracts and servers as they are now. A start that cannot be resolved is refused for good.
func (a *Activities) Resolve(_ context.Context, start contract.Start) (contract.Resolved, error) {
	resolved, err := a.Manifest.Resolve(start)
	if err != nil {
		why := err.Error()
		if errors.Is(err, manifest.ErrUnknownPlan) {
			why += fmt.Sprintf("; that is the manifest of worker %s, and all workers of a namespace need the same plans", a.Worker)
		}
		return contract.Resolved{}, temporal.NewNonRetryableApplicationError(why, contract.ErrorStart, nil)
	}
	resolved.SearchAttributes = a.SearchAttributes
	return resolved, nil
}

// Generation answers with the run that it is called in. A run made by a Temporal reset carries the run ID of the one
// that it was made from, and finds out by comparing.
func (a *Activities) Generation(ctx context.Context) (string, error) {
	return activity.GetInfo(ctx).WorkflowExecution.RunID, nil
}

// Execute makes one mutating call, at most once, and says what it told us.
func (a *Activities) Execute(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	return a.mutate(ctx, contract.CallExecute, call), nil
}

// Compensate makes the call that undoes another, under the same rules.
func (a *Activities) Compensate(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	return a.mutate(ctx, contract.CallCompensate, call), nil
}

// patience is how much longer than its write deadline an attempt waits for the answer. It leaves time to report before
// Temporal gives up on the attempt.
const patience = time.Second

// mutate makes a mutating call under its write deadline: the start of the activity plus the contract's timeout, on the
// server's clock and on ours, whichever is earlier. Nothing is written after it, so that whoever waited for it may rely
// on what it sees then.
func (a *Activities) mutate(ctx context.Context, kind contract.CallKind, call contract.Call) contract.Outcome {
	info := activity.GetInfo(ctx)
	now := a.now()
	evidence := contract.Evidence{Call: kind, Attempt: call.Attempt, Tool: call.Tool, Asked: asked(call.Args), At: now, By: a.Worker}
	if info.WorkflowExecution.RunID != call.Tx.Run {
		evidence.Said, evidence.Written = string(contract.Reset), contract.NotWritten
		evidence.Why = "this run was made by a Temporal reset: nothing was touched"
		return contract.Outcome{Kind: contract.Reset, Why: evidence.Why, Evidence: evidence}
	}
	deadline := now.Add(call.Timeout.Std())
	if started := info.StartedTime; !started.IsZero() && started.Before(now) {
		deadline = started.Round(0).Add(call.Timeout.Std())
	}
	callCtx, cancel := context.WithTimeout(ctx, deadline.Sub(now)+patience)
	defer cancel()
	reply := a.Pool.Call(callCtx, call.Server, toolclient.Call{
		ID:            contract.CallID(call.Tx.ID, call.Step, kind, call.Attempt),
		Tool:          call.Tool,
		Args:          call.Args,
		Meta:          meta(call.Tx, call.Step, call.Attempt),
		WriteDeadline: deadline,
	})
	out := Classify(call, reply)
	a.scrub(call.Server, &out)
	out.WriteDeadline = deadline
	evidence.Said, evidence.Why, evidence.Written = string(out.Kind), out.Why, reply.Written
	if out.Error != nil {
		evidence.Answer = head(out.Error.Message)
	}
	evidence.Took = contract.Duration(a.now().Sub(now).Round(time.Millisecond))
	out.Evidence = evidence
	return out
}

// scrub keeps the server's configured secrets out of what is written down of its error answers.
func (a *Activities) scrub(server contract.ServerRef, out *contract.Outcome) {
	out.Why = a.Pool.Scrub(server, out.Why)
	if out.Error != nil {
		out.Error.Code, out.Error.Message = a.Pool.Scrub(server, out.Error.Code), a.Pool.Scrub(server, out.Error.Message)
	}
}

// asked is the head of the digest of a call's arguments.
func asked(args json.RawMessage) string {
	kept := contract.Keep(args, nil, 0)
	if kept == nil {
		return ""
	}
	return kept.Digest[:12]
}

func (a *Activities) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	// Without its monotonic part: a process may have been frozen, or the machine suspended.
	return time.Now().Round(0)
}

// inspectorFailed is retried by Temporal: looking again changes nothing. It is no fault of the worker.
func inspectorFailed(tool, why string) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s: %s", tool, why), "InspectorFailed",
		temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
}

// Inspect asks the owner what is there. Where the inspector itself fails it returns an error, which Temporal retries;
// the last attempt answers inconclusive instead.
func (a *Activities) Inspect(ctx context.Context, request contract.Inspection) (contract.Look, error) {
	info := activity.GetInfo(ctx)
	now := a.now()
	callCtx, cancel := context.WithTimeout(ctx, request.Timeout.Std())
	defer cancel()
	reply := a.Pool.Call(callCtx, request.Server, toolclient.Call{
		Tool: request.Tool, Args: request.Query, Meta: meta(request.Tx, request.Step, request.Attempt),
	})
	look, failed := Judge(request, reply)
	look.Why = a.Pool.Scrub(request.Server, look.Why)
	if failed && info.Attempt < contract.InspectAttempts {
		return contract.Look{}, inspectorFailed(request.Tool, look.Why)
	}
	look.Evidence = contract.Evidence{
		Call: contract.CallInspect, Attempt: request.Attempt, Tool: request.Tool, Asked: asked(request.Query),
		Said: string(look.Verdict), Why: look.Why, Written: reply.Written,
		At: now, Took: contract.Duration(a.now().Sub(now).Round(time.Millisecond)), By: a.Worker,
	}
	look.Late = a.late(request)
	return look, nil
}

// late is the answer to the attempt that is asked about, if it came after its caller had stopped waiting.
func (a *Activities) late(request contract.Inspection) *contract.Evidence {
	id := contract.CallID(request.Tx.ID, request.Step, contract.CallExecute, request.Attempt)
	reply, ok := a.Pool.Late(request.Server, id)
	if !ok {
		return nil
	}
	out := Classify(contract.Call{}, reply)
	a.scrub(request.Server, &out)
	evidence := &contract.Evidence{
		Call: contract.CallExecute, Attempt: request.Attempt, Tool: request.Tool, Late: true,
		Said: string(out.Kind), Why: "answered after we had stopped waiting", Written: reply.Written,
		At: reply.Received, By: a.Worker,
	}
	if out.Error != nil {
		evidence.Answer = head(out.Error.Message)
	}
	return evidence
}

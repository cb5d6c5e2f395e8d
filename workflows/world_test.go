package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/workflows"
)

// world simulates the owners of the resources: naive ones, with which calling twice makes two things. What each call
// does is scripted; what is true is kept in effects.
type world struct {
	env *testsuite.TestWorkflowEnvironment

	mu      sync.Mutex
	def     contract.Definition
	effects map[string][]string // by step: the transactions whose effects exist
	script  map[string][]string // by "execute:step", "inspect:step", "compensate:step": what the next calls do
	log     []string            // every call that reached an owner
	run     string              // the run that activities find themselves in
	states  []string            // transitions seen from outside, "step STATE"
}

const testRun = "default-test-run-id"

func newWorld(t *testing.T, def contract.Definition) *world {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	w := &world{
		env: suite.NewTestWorkflowEnvironment(), def: def, run: testRun,
		effects: map[string][]string{}, script: map[string][]string{},
	}
	w.env.RegisterWorkflowWithOptions(workflows.Transaction, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	register := func(name string, fn any) {
		w.env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	register(contract.ActivityResolve, func(context.Context, contract.Start) (contract.Resolved, error) {
		return contract.Resolved{Definition: w.def}, nil
	})
	register(contract.ActivityGeneration, func(context.Context) (string, error) { return w.run, nil })
	register(contract.ActivityExecute, w.execute)
	register(contract.ActivityInspect, w.inspect)
	register(contract.ActivityCompensate, w.compensate)
	return w
}

// next takes the next word of the script for a call, "" when it is used up.
func (w *world) next(kind contract.CallKind, step string) string {
	key := string(kind) + ":" + step
	words := w.script[key]
	if len(words) == 0 {
		return ""
	}
	w.script[key] = words[1:]
	return words[0]
}

func (w *world) execute(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := contract.Outcome{
		WriteDeadline: w.env.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallExecute, Attempt: call.Attempt, Tool: call.Tool},
	}
	if call.Tx.Run != w.run {
		out.Kind = contract.Reset
		return out, nil
	}
	word := w.next(contract.CallExecute, call.Step)
	commit := func() { w.effects[call.Step] = append(w.effects[call.Step], call.Tx.ID) }
	if word != "idle" {
		w.log = append(w.log, "execute "+call.Step)
	}
	switch word {
	case "":
		commit()
		out.Kind = contract.Acknowledged
		out.Result = contract.Keep(json.RawMessage(fmt.Sprintf(`{"id":"%s-%d"}`, call.Step, len(w.effects[call.Step]))), nil, contract.ResultLimit)
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
	case "lost-before":
		out.Kind, out.Why = contract.Unknown, "connection reset"
	case "lost-after":
		commit()
		out.Kind, out.Why = contract.Unknown, "connection reset"
	case "late":
		out.Kind, out.Why = contract.Unknown, "no answer in time"
		w.env.RegisterDelayedCallback(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			commit()
		}, call.Timeout.Std()+time.Second)
	case "crash":
		return out, errors.New("worker died")
	case "timeout-after":
		commit()
		return out, temporal.NewTimeoutError(3, nil) // START_TO_CLOSE
	default:
		return out, temporal.NewNonRetryableApplicationError("unknown word "+word, "Script", nil)
	}
	return out, nil
}

func (w *world) inspect(ctx context.Context, request contract.Inspection) (contract.Look, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, "inspect "+request.Step)
	look := contract.Look{Evidence: contract.Evidence{Call: contract.CallInspect, Tool: request.Tool}}
	switch word := w.next(contract.CallInspect, request.Step); {
	case word == "fail":
		look.Verdict, look.Why = contract.Inconclusive, "the inspector is down"
	case word == "stale" || word == "" && len(w.effects[request.Step]) == 0:
		look.Verdict = contract.Absent
	default:
		look.Verdict = contract.Present
		look.Result = contract.Keep(json.RawMessage(fmt.Sprintf(`{"id":"%s-%d"}`, request.Step, len(w.effects[request.Step]))), nil, contract.ResultLimit)
	}
	return look, nil
}

func (w *world) compensate(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := contract.Outcome{
		WriteDeadline: w.env.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallCompensate, Attempt: call.Attempt, Tool: call.Tool},
	}
	if call.Tx.Run != w.run {
		out.Kind = contract.Reset
		return out, nil
	}
	w.log = append(w.log, "compensate "+call.Step)
	remove := func() {
		if n := len(w.effects[call.Step]); n > 0 {
			w.effects[call.Step] = w.effects[call.Step][:n-1]
		}
	}
	switch word := w.next(contract.CallCompensate, call.Step); word {
	case "":
		remove()
		out.Kind = contract.Acknowledged
	case "lie":
		out.Kind = contract.Acknowledged
	case "lost-after":
		remove()
		out.Kind, out.Why = contract.Unknown, "connection reset"
	case "lost-before":
		out.Kind, out.Why = contract.Unknown, "connection reset"
	case "error":
		out.Kind, out.Why, out.Answered = contract.Unknown, "internal", true
	default:
		return out, temporal.NewNonRetryableApplicationError("unknown word "+word, "Script", nil)
	}
	return out, nil
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

func (w *world) existing() []string {
	var steps []string
	for step, owners := range w.effects {
		for range owners {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps
}

// run runs the transaction to its end and returns its receipt.
func (w *world) transact(t *testing.T) contract.Receipt {
	t.Helper()
	w.env.ExecuteWorkflow(contract.WorkflowTransaction, contract.Start{
		Plan: w.def.Plan, Input: json.RawMessage(`{"workspace":"acme"}`), Requester: "agent", Identity: &contract.Identity{},
	})
	require.True(t, w.env.IsWorkflowCompleted(), "the transaction did not end")
	return w.receipt(t)
}

func (w *world) receipt(t *testing.T) contract.Receipt {
	t.Helper()
	var receipt contract.Receipt
	err := w.env.GetWorkflowError()
	if err == nil {
		require.NoError(t, w.env.GetWorkflowResult(&receipt))
		return receipt
	}
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.HasDetails(), "%v", err)
	require.NoError(t, app.Details(&receipt))
	require.Equal(t, app.Type(), string(receipt.State), "the error's type is the state")
	return receipt
}

// when does something as soon as the transaction is in a state, looking every 10 ms of simulated time.
func (w *world) when(state contract.TxState, do func(contract.Snapshot)) {
	var poll func()
	poll = func() {
		if w.env.IsWorkflowCompleted() {
			return
		}
		snapshot, err := w.snapshot()
		if err == nil && snapshot.State == state {
			do(snapshot)
			return
		}
		w.env.RegisterDelayedCallback(poll, 10*time.Millisecond)
	}
	w.env.RegisterDelayedCallback(poll, time.Millisecond)
}

func (w *world) snapshot() (contract.Snapshot, error) {
	var snapshot contract.Snapshot
	value, err := w.env.QueryWorkflow(contract.QuerySnapshot)
	if err != nil {
		return snapshot, err
	}
	return snapshot, value.Get(&snapshot)
}

func (w *world) signal(name string, d contract.Decision) { w.env.SignalWorkflow(name, d) }

// approveRollback approves the first undo plan that is published.
func (w *world) approveRollback() {
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
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

func states(receipt contract.Receipt) map[string]contract.StepState {
	found := map[string]contract.StepState{}
	for _, s := range receipt.Steps {
		found[s.ID] = s.State
	}
	return found
}

package workflows_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestIndependentStepsRunAtTheSameTime(t *testing.T) {
	w := newWorld(t, diamond())
	w.script["execute:left"], w.script["execute:right"] = []string{"@3s"}, []string{"@3s"}
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Equal(t, 2, w.most.calls)
	order := w.calls(contract.CallExecute)
	require.Equal(t, "top", order[0])
	require.Equal(t, "bottom", order[3])
	require.Less(t, w.times[3].Sub(w.times[0]), 5*time.Second, "three seconds, not six")
}

func TestAStepWaitsForWhatItNeedsOnly(t *testing.T) {
	w := newWorld(t, plan(contract.Step{ID: "slow"}, contract.Step{ID: "a"}, contract.Step{ID: "b", Needs: []string{"a"}}))
	w.script["execute:slow"] = []string{"@1h"}
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Equal(t, []string{"a", "b", "slow"}, w.calls(contract.CallExecute))
}

// After a failure nothing new is executed anywhere, retries included; what is in flight settles.
func TestAFailureStopsEverythingNew(t *testing.T) {
	w := newWorld(t, plan(
		contract.Step{ID: "bad"},
		contract.Step{ID: "flying"},
		contract.Step{ID: "doubtful"},
		contract.Step{ID: "idle"},
		contract.Step{ID: "next", Needs: []string{"flying"}},
	))
	w.script["execute:bad"] = []string{"refuse@2s"}
	w.script["execute:flying"] = []string{"@10s"}
	w.script["execute:doubtful"] = []string{"lost-before"}             // would be sent again at 9s
	w.script["execute:idle"] = []string{"idle@1900ms", "idle", "idle"} // would be tried again at 2.15s
	w.script["inspect:bad"] = nil
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, map[string]contract.StepState{
		"bad": contract.StepFailed, "flying": contract.StepCompensated, "doubtful": contract.StepFailed,
		"idle": contract.StepFailed, "next": contract.StepSkipped,
	}, states(receipt))
	require.Equal(t, 1, w.executions("doubtful"))
	require.Zero(t, w.executions("idle"))
	step, _ := receipt.Step("doubtful")
	require.Contains(t, step.Reason, "proven absent")
}

func TestAnUnknownStepPausesEverythingAndResumes(t *testing.T) {
	w := newWorld(t, plan(
		contract.Step{ID: "unknown"},
		contract.Step{ID: "flying"},
		contract.Step{ID: "next", Needs: []string{"flying"}},
		contract.Step{ID: "last", Needs: []string{"unknown", "next"}},
	))
	w.script["execute:unknown"], w.script["inspect:unknown"] = []string{"lost-after"}, []string{"fail"}
	w.script["execute:flying"] = []string{"idle", "@2s"}
	paused := false
	w.when(contract.TxAwaitingResolution, func(s contract.Snapshot) {
		next, _ := s.Step("next")
		require.Equal(t, contract.StepPending, next.State)
		w.env.RegisterDelayedCallback(func() {
			paused = true
			require.Zero(t, w.executions("next"))
			w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "unknown", As: contract.ResolveInspect})
		}, time.Hour)
	})
	receipt := w.transact(t)
	require.True(t, paused)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Equal(t, []string{"flying", "last", "next", "unknown"}, w.existing())
	require.Equal(t, contract.StepRecovered, states(receipt)["unknown"])
}

func TestNotAfter(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		want  contract.TxState
	}{
		"in time":                           {[]string{""}, contract.TxCommitted},
		"a runner came too late":            {[]string{"no-worker@1m"}, contract.TxCompensated},
		"what is late is not sent again":    {[]string{"lost-before@59s"}, contract.TxCompensated},
		"in time, though its answer is not": {[]string{"@2h"}, contract.TxCommitted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, plan(contract.Step{ID: "a"}, contract.Step{ID: "b", Needs: []string{"a"}, NotAfter: contract.Duration(time.Minute)}))
			w.script["execute:b"] = c.words
			w.approveRollback()
			receipt := w.transact(t)
			require.Equal(t, c.want, receipt.State)
			if c.want == contract.TxCompensated {
				step, _ := receipt.Step("b")
				require.Equal(t, contract.StepFailed, step.State)
				require.Contains(t, step.Reason, "must not be later than 1m0s")
				require.LessOrEqual(t, w.executions("b"), 1)
			}
		})
	}
	t.Run("an approval came too late", func(t *testing.T) {
		def := plan(contract.Step{ID: "a", NotAfter: contract.Duration(time.Minute)})
		def.Approval.Start = contract.ApprovalRequired
		w := newWorld(t, def)
		w.at(2*time.Minute, func() { w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"}) })
		require.Equal(t, contract.TxFailed, w.transact(t).State)
		require.Empty(t, w.log)
	})
}

func TestAtMost32CallsAreInFlight(t *testing.T) {
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("s%d", i))
	}
	w := newWorld(t, parallel(ids...))
	for _, id := range ids {
		w.script["execute:"+id] = []string{"@2s"}
	}
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Equal(t, 32, w.most.calls)
	require.Len(t, w.existing(), 100)
}

func TestAtMostOneMebibyteOfArgumentsIsInFlight(t *testing.T) {
	var steps []contract.Step
	for i := range 40 {
		steps = append(steps, contract.Step{ID: fmt.Sprintf("s%d", i), Args: contract.Template(`{"text":"${input.text}"}`)})
	}
	w := newWorld(t, plan(steps...))
	w.start.Input = encoded(map[string]string{"text": strings.Repeat("x", 100<<10)})
	w.gap = time.Second
	for _, s := range steps {
		w.script["execute:"+s.ID] = []string{"@2s"}
	}
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.LessOrEqual(t, w.most.bytes, 1<<20)
	require.Greater(t, w.most.calls, 5)
	require.Len(t, w.existing(), 40)
}

func TestACallThatIsTooLargeFailsBeforeItIsDispatched(t *testing.T) {
	w := newWorld(t, plan(contract.Step{ID: "a", Args: contract.Template(`{"one":"${input.text}","two":"${input.text}"}`)}))
	w.start.Input = encoded(map[string]string{"text": strings.Repeat("x", 1<<20)})
	receipt := w.transact(t)
	require.Equal(t, contract.TxFailed, receipt.State)
	require.Empty(t, w.log)
	require.Contains(t, receipt.Steps[0].Reason, "bytes")
}

func TestAStepThatCannotBeFilledFailsBeforeItIsDispatched(t *testing.T) {
	for name, args := range map[string]string{
		"a member that the result does not have": `{"x":"${steps.a.result.nothing}"}`,
		"a member of a member":                   `{"x":"${steps.a.result.id.deep}"}`,
		"an item of an object":                   `{"x":"${steps.a.result[0]}"}`,
		"an object inside text":                  `{"x":"${input.nothing}!"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, plan(contract.Step{ID: "a"}, contract.Step{ID: "b", Needs: []string{"a"}, Args: contract.Template(args)}))
			w.approveRollback()
			receipt := w.transact(t)
			require.Equal(t, contract.TxCompensated, receipt.State)
			require.Zero(t, w.executions("b"))
			step, _ := receipt.Step("b")
			require.Equal(t, contract.StepFailed, step.State)
			require.Contains(t, step.Reason, "cannot be called")
			require.Zero(t, step.Attempts)
		})
	}
}

// What a result says arrives at the next step with every digit, and so does the input.
func TestNumbersKeepEveryDigit(t *testing.T) {
	w := newWorld(t, plan(
		contract.Step{ID: "a"},
		contract.Step{ID: "b", Needs: []string{"a"}, Args: contract.Template(
			`{"n":"${input.n}","text":"${input.n}/${steps.a.result.n}","tx":"${tx.id}","me":"${step.id}/${step.attempt}","all":"${steps.a.result}"}`)},
	))
	w.start.Input = json.RawMessage(`{"n":9007199254740993}`)
	w.script["execute:a"], w.script["inspect:a"] = []string{"lost-before"}, []string{"fail"}
	w.when(contract.TxAwaitingResolution, func(contract.Snapshot) {
		w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveCommitted,
			Result: json.RawMessage(`{"n":18446744073709551617.50,"s":"<&>"}`)})
	})
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Equal(t, `{"n":9007199254740993,"text":"9007199254740993/18446744073709551617.50","tx":"`+testRun+
		`","me":"b/1","all":{"n":18446744073709551617.50,"s":"\u003c\u0026\u003e"}}`, string(w.seen[1].Args))
}

func TestAPlanOfAThousandStepsCompletes(t *testing.T) {
	w := newWorld(t, thousand())
	w.gap = time.Minute
	receipt := w.transact(t)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Len(t, w.existing(), 1000)
	require.Less(t, len(encoded(receipt)), 2<<20)
	require.LessOrEqual(t, w.most.calls, 32)
}

func TestAPlanOfAThousandStepsIsUndone(t *testing.T) {
	w := newWorld(t, thousand())
	w.gap = time.Minute
	w.script["execute:s999"] = []string{"refuse"}
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) { require.Less(t, len(encoded(s)), 2<<20) })
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Empty(t, w.existing())
	require.Less(t, len(encoded(receipt)), 2<<20)
}

// thousand is a plan of a thousand steps, ten wide and a hundred deep.
func thousand() contract.Definition {
	var steps []contract.Step
	for i := range 1000 {
		s := contract.Step{ID: fmt.Sprintf("s%d", i), Args: contract.Template(`{"name":"${tx.id}","about":"` + strings.Repeat("x", 600) + `"}`)}
		if i >= 10 {
			s.Needs = []string{fmt.Sprintf("s%d", i-10)}
			s.Args = contract.Template(fmt.Sprintf(`{"on":"${steps.s%d.result.id}"}`, i-10))
		}
		steps = append(steps, s)
	}
	return plan(steps...)
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Where results are larger than what the workflow keeps, what others refer to stays exact, and nothing else is handed
// on as if it were whole.
func TestLargeResultsAreKeptWhereTheyAreReferredTo(t *testing.T) {
	large := `{"id":"big-1","rest":"` + strings.Repeat("x", 100<<10) + `"}`
	for name, c := range map[string]struct {
		args string
		want contract.TxState
	}{
		"a member that is kept":   {`{"x":"${steps.a.result.id}"}`, contract.TxCommitted},
		"a member that is not":    {`{"x":"${steps.a.result.rest}"}`, contract.TxCompensated},
		"the whole, which is not": {`{"x":"${steps.a.result}"}`, contract.TxCompensated},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, plan(contract.Step{ID: "a"}, contract.Step{ID: "b", Needs: []string{"a"}, Args: contract.Template(c.args)}))
			w.script["execute:a"], w.script["inspect:a"] = []string{"lost-after"}, []string{"fail"}
			w.when(contract.TxAwaitingResolution, func(contract.Snapshot) {
				w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveCommitted, Result: json.RawMessage(large)})
			})
			w.approveRollback()
			receipt := w.transact(t)
			require.Equal(t, c.want, receipt.State)
			a, _ := receipt.Step("a")
			require.True(t, a.Result.Reduced)
			require.Equal(t, len(large), a.Result.Size)
			require.JSONEq(t, `{"id":"big-1"}`, string(a.Result.Value))
			if c.want == contract.TxCompensated {
				b, _ := receipt.Step("b")
				require.Contains(t, b.Reason, "too large to be kept")
				require.Zero(t, w.executions("b"))
			} else {
				require.JSONEq(t, `{"x":"big-1"}`, string(w.seen[slices.IndexFunc(w.seen, func(c contract.Call) bool { return c.Step == "b" })].Args))
			}
		})
	}
}

// An idempotent tool is sent again without asking, but what became of the calls before is not forgotten.
func TestIdempotentCallsAreSettledByAnAnswerOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*contract.Tool)
		words      []string
		state      contract.TxState
		step       contract.StepState
		executions int
		unknown    bool
	}{
		"answered in the end":                    {idempotent, []string{"lost-after", "lost-before", ""}, contract.TxCommitted, contract.StepCommitted, 3, false},
		"never answered":                         {idempotent, []string{"lost-after", "lost-before", "lost-before"}, contract.TxCommitted, contract.StepCommitted, 3, true},
		"refused after a call without an answer": {idempotent, []string{"lost-after", "refuse"}, contract.TxCommitted, contract.StepCommitted, 2, true},
		"not executed after a call without an answer": {idempotent,
			[]string{"lost-after", "idle", "idle", "idle", "idle", "idle", "idle", "idle", "idle"}, contract.TxCompensated, contract.StepNotCompensable, 1, true},
		"refused at once": {idempotent, []string{"refuse"}, contract.TxFailed, contract.StepFailed, 1, false},
		"a read that is never answered has nothing in effect": {readOnly, []string{"lost-after", "lost-before", "error"}, contract.TxFailed, contract.StepFailed, 3, false},
		"a read that is refused":                              {readOnly, []string{"refuse"}, contract.TxFailed, contract.StepFailed, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, with(chain("a"), "a", c.change))
			w.script["execute:a"] = c.words
			asked := false
			w.when(contract.TxAwaitingResolution, func(s contract.Snapshot) {
				asked = true
				w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveCommitted, Attempt: s.Steps[0].Attempts})
			})
			w.approveRollback()
			receipt := w.transact(t)
			require.Equal(t, c.unknown, asked, "%v", receipt.Steps[0].Reason)
			if c.state == contract.TxCompensated { // it had been given up, and cannot be undone
				c.state = contract.TxPartiallyCompensated
			}
			require.Equal(t, c.state, receipt.State)
			require.Equal(t, c.step, receipt.Steps[0].State)
			require.Equal(t, c.executions, w.executions("a"))
		})
	}
}

func TestABeforeLookThatFindsSomethingIsAConflict(t *testing.T) {
	before := func(c *contract.Tool) { c.Inspect.Before = true }
	w := newWorld(t, with(chain("a", "b"), "b", before))
	w.create("b", testRun)
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Zero(t, w.executions("b"))
	require.Equal(t, []string{"b"}, w.existing(), "it is not ours to undo")

	w = newWorld(t, with(chain("b"), "b", before))
	w.script["inspect:b"] = []string{"fail", "fail"}
	receipt = w.transact(t)
	require.Equal(t, contract.TxCommitted, receipt.State, "an inconclusive look is tried again")
	require.Equal(t, 3, w.count("inspect b"))

	w = newWorld(t, with(chain("b"), "b", before))
	w.script["inspect:b"] = slices.Repeat([]string{"fail"}, 20)
	receipt = w.transact(t)
	require.Equal(t, contract.TxFailed, receipt.State, "but not for ever")
	require.Zero(t, w.executions("b"))
}

func TestAnInvalidStartFailsBeforeAnything(t *testing.T) {
	def := chain("a")
	def.Steps[0].Needs = []string{"nothing"}
	w := newWorld(t, def)
	w.env.ExecuteWorkflow(contract.WorkflowTransaction, w.start)
	require.ErrorContains(t, w.env.GetWorkflowError(), "no step")
	require.Empty(t, w.log)

	w = newWorld(t, chain("a"))
	w.start.Identity = &contract.Identity{Definition: "another"}
	w.env.ExecuteWorkflow(contract.WorkflowTransaction, w.start)
	require.ErrorContains(t, w.env.GetWorkflowError(), "bring both to the same manifest")
	require.Empty(t, w.log)
}

func TestAStartByHandSaysSo(t *testing.T) {
	w := newWorld(t, chain("a"))
	w.def.Warnings = []string{"a lint warning"}
	w.start = contract.Start{Plan: "test", Input: w.start.Input}
	receipt := w.transact(t)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Len(t, receipt.Notes, 2)
	require.Contains(t, receipt.Notes[0], "started by hand")
}

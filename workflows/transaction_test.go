package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestEveryStepOfAHappyPlanIsExecutedOnce(t *testing.T) {
	w := newWorld(t, chain("a", "b", "c", "d"))
	receipt := w.transact(t)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Equal(t, []string{"execute a", "execute b", "execute c", "execute d"}, w.log, "nothing is inspected without a doubt")
	require.Equal(t, []string{"a", "b", "c", "d"}, w.existing())
	require.NotEmpty(t, receipt.Digest)
}

// The main story: a lost acknowledgement is inspected, a refusal stops, a human approves, everything is undone in
// reverse order and verified.
func TestStory(t *testing.T) {
	w := newWorld(t, chain("database", "compute", "routing", "frontend"))
	w.script["execute:routing"] = []string{"lost-after"}
	w.script["execute:frontend"] = []string{"refuse"}
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State, "%+v", receipt)
	require.Equal(t, 1, w.executions("routing"))
	require.Empty(t, w.existing())
	require.Equal(t, []string{"routing", "compute", "database"}, w.calls(contract.CallCompensate))
	require.Equal(t, map[string]contract.StepState{
		"database": contract.StepCompensated, "compute": contract.StepCompensated,
		"routing": contract.StepCompensated, "frontend": contract.StepFailed,
	}, states(receipt))
}

// What one call of one step may do, and what must come of it. The step stands alone.
func TestOneStep(t *testing.T) {
	for name, c := range map[string]struct {
		execute, inspect []string
		change           func(*contract.Tool)
		state            contract.TxState
		step             contract.StepState
		executions       int
		looks            int
		exist            int
		human            func(*world)
	}{
		"acknowledged": {state: contract.TxCommitted, step: contract.StepCommitted, executions: 1, exist: 1},
		"lost after the commit: recovered, not sent again": {
			execute: []string{"lost-after"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 1, exist: 1},
		"lost before the commit: sent again after two absent looks": {
			execute: []string{"lost-before"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 2, looks: 2, exist: 1},
		"late commit: found by the second look": {
			execute: []string{"late"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 2, exist: 1},
		"error answer after the commit: recovered": {
			execute: []string{"error-after"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 1, exist: 1},
		"error answer without a commit: sent again": {
			execute: []string{"error"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 2, looks: 2, exist: 1},
		"the worker dies after the commit: recovered": {
			execute: []string{"timeout-after"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 1, exist: 1},
		"the worker fails: in doubt, not failed": {
			execute: []string{"crash"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 2, looks: 2, exist: 1},
		"refused: one look confirms, and a last look at the end": {
			execute: []string{"refuse"}, state: contract.TxFailed, step: contract.StepFailed, executions: 1, looks: 2},
		"refused, but committed anyway: recovered": {
			execute: []string{"refuse-but-commit"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 1, exist: 1},
		"taken and not finished, but in effect: recovered": {
			execute: []string{"open-after"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 1, exist: 1},
		"taken and not finished: absence proves nothing": {
			execute: []string{"open"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 2, looks: 2, exist: 1,
			human: resolves(contract.ResolveAbsent)},
		"not executed: tried again": {
			execute: []string{"idle", "idle"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 1, exist: 1},
		"not executed, again and again: failed": {
			execute: []string{"idle", "idle", "idle", "idle", "idle", "idle", "idle", "idle"}, state: contract.TxFailed, step: contract.StepFailed},
		"lost more often than there are retries: failed": {
			execute: []string{"lost-before", "lost-before", "lost-before"}, state: contract.TxFailed, step: contract.StepFailed, executions: 3, looks: 7},
		"refused without an inspector: failed at the owner's word": {
			change:  func(c *contract.Tool) { c.Inspect, c.Compensate = nil, nil },
			execute: []string{"refuse"}, state: contract.TxFailed, step: contract.StepFailed, executions: 1},
		"idempotent: sent again without asking": {
			change:  func(c *contract.Tool) { c.Risk, c.Inspect, c.Compensate = contract.RiskIdempotent, nil, nil },
			execute: []string{"lost-before"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 2, exist: 1},
		"no inspector: UNKNOWN, until a human says committed": {
			change:  func(c *contract.Tool) { c.Inspect, c.Compensate = nil, nil },
			execute: []string{"lost-after"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 1, exist: 1,
			human: resolves(contract.ResolveCommitted)},
		"inspector inconclusive: UNKNOWN, until a human says absent": {
			execute: []string{"lost-before"}, inspect: []string{"fail"},
			state: contract.TxCommitted, step: contract.StepCommitted, executions: 2, looks: 1, exist: 1,
			human: resolves(contract.ResolveAbsent)},
		"inspector inconclusive: UNKNOWN, until a human asks to look again": {
			execute: []string{"lost-after"}, inspect: []string{"fail"},
			state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 2, exist: 1,
			human: resolves(contract.ResolveInspect)},
		"something is there that may not be ours: UNKNOWN": {
			change:  func(c *contract.Tool) { c.Inspect.Proves = nil },
			execute: []string{"lost-after"}, state: contract.TxCommitted, step: contract.StepCommitted, executions: 1, looks: 1, exist: 1,
			human: resolves(contract.ResolveCommitted)},
		"recognised by a look before": {
			change:  func(c *contract.Tool) { c.Inspect.Proves, c.Inspect.Before = nil, true },
			execute: []string{"lost-after"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 2, exist: 1},
		"recognised by key": {
			change:  func(c *contract.Tool) { c.Inspect.Proves, c.OursByKey = nil, true },
			execute: []string{"lost-after"}, state: contract.TxCommitted, step: contract.StepRecovered, executions: 1, looks: 1, exist: 1},
	} {
		t.Run(name, func(t *testing.T) {
			def := chain("a")
			if c.change != nil {
				def = with(def, "a", c.change)
			}
			w := newWorld(t, def)
			w.script["execute:a"], w.script["inspect:a"] = c.execute, c.inspect
			if c.human != nil {
				c.human(w)
			}
			receipt := w.transact(t)
			step, _ := receipt.Step("a")
			require.Equal(t, c.state, receipt.State, "%s: %s", step.State, step.Reason)
			require.Equal(t, c.step, step.State, step.Reason)
			require.Equal(t, c.executions, w.executions("a"), "executions")
			require.Equal(t, c.looks, w.count("inspect a"), "looks")
			require.Len(t, w.existing(), c.exist)
		})
	}
}

// resolves answers the first UNKNOWN step.
func resolves(as contract.Resolution) func(*world) {
	return func(w *world) {
		w.when(contract.TxAwaitingResolution, func(s contract.Snapshot) {
			for _, step := range s.Steps {
				if step.State.NeedsHuman() {
					w.signal(contract.SignalResolveStep, contract.Decision{
						By: "alice", Step: step.ID, As: as, Result: []byte(`{"id":"by-hand"}`), Reason: "looked myself",
					})
				}
			}
		})
	}
}

package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// What Temporal itself says about a call. Only a worker that never had it is proof; the rest is in doubt. (The SDK's
// test environment reports a started event of 0 for every error: that a call was begun is told apart on a real server.)
func TestDoubtFromTemporalsOwnErrors(t *testing.T) {
	for word, c := range map[string]struct {
		step       contract.StepState
		executions int
		looks      int
	}{
		"no-worker":     {contract.StepCommitted, 1, 0}, // never handed to a worker
		"recalled":      {contract.StepCommitted, 1, 0}, // cancelled before a worker began it
		"timeout-after": {contract.StepRecovered, 1, 1},
		"heartbeat":     {contract.StepCommitted, 2, 2},
		"crash":         {contract.StepCommitted, 2, 2},
		"crash-after":   {contract.StepRecovered, 1, 1},
		"fatal":         {contract.StepCommitted, 2, 2},
		"panic":         {contract.StepCommitted, 2, 2},
		"garbage":       {contract.StepCommitted, 2, 2}, // an answer that nobody can read is no answer
	} {
		t.Run(word, func(t *testing.T) {
			w := newWorld(t, chain("a"))
			w.script["execute:a"] = []string{word}
			receipt := w.transact(t)
			require.Equal(t, contract.TxCommitted, receipt.State)
			require.Equal(t, c.step, receipt.Steps[0].State, receipt.Steps[0].Reason)
			require.Equal(t, c.executions, w.executions("a"))
			require.Equal(t, c.looks, w.count("inspect a"))
			require.Len(t, w.existing(), 1)
			first := receipt.Steps[0].Evidence[0]
			require.Equal(t, contract.CallExecute, first.Call)
			require.Equal(t, "Temporal", first.By)
			require.NotEmpty(t, first.Why)
		})
	}
}

// Absence counts only when the attempt can write no more and the owner has settled.
func TestWhenAbsenceCounts(t *testing.T) {
	for word, want := range map[string]time.Duration{
		"refuse":      0,               // at one look
		"error":       4 * time.Second, // settle after the answer
		"lost-before": 9 * time.Second, // settle after the write deadline
		"crash":       9 * time.Second, // it may still run somewhere
		"heartbeat":   4 * time.Second, // its write deadline has passed
	} {
		t.Run(word, func(t *testing.T) {
			w := newWorld(t, with(chain("a"), "a", func(c *contract.Tool) { c.Retries = 0 }))
			w.script["execute:a"] = []string{word}
			w.whenStep("a", contract.StepFailed, func(contract.Snapshot) {})
			require.Equal(t, contract.TxFailed, w.transact(t).State)
			counted := w.times[len(w.times)-2] // the last is the last look before the end
			require.InDelta(t, want.Seconds(), counted.Sub(w.times[0]).Seconds(), 0.5, "%v", w.log)
		})
	}
}

func TestAnInspectorThatFailsIsInconclusive(t *testing.T) {
	w := newWorld(t, chain("a"))
	w.script["execute:a"], w.script["inspect:a"] = []string{"lost-after"}, []string{"crash"}
	resolves(contract.ResolveInspect)(w)
	receipt := w.transact(t)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Equal(t, contract.StepRecovered, receipt.Steps[0].State)
}

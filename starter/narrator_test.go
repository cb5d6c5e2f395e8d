package starter

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

func said(call contract.CallKind, said string) contract.Evidence {
	return contract.Evidence{Call: call, Said: said, Tool: "tool"}
}

func TestTheNarratorFollowsAStepThroughItsStates(t *testing.T) {
	const execute, inspect, compensate = contract.CallExecute, contract.CallInspect, contract.CallCompensate
	for _, test := range []struct {
		name     string
		now      contract.StepState
		evidence []contract.Evidence
		states   []contract.StepState
	}{
		{"acknowledged", contract.StepCommitted,
			[]contract.Evidence{said(execute, "acknowledged")}, []contract.StepState{contract.StepCommitted}},
		{"recovered, looked at, undone, swept", contract.StepCompensated,
			[]contract.Evidence{said(execute, "unknown"), said(inspect, "present"), said(inspect, "present"), said(compensate, "acknowledged"), said(inspect, "present"), said(inspect, "absent"), said(inspect, "absent")},
			[]contract.StepState{contract.StepInDoubt, contract.StepRecovered, contract.StepRecovered, contract.StepCompensating, contract.StepCompensating, contract.StepCompensated, contract.StepCompensated}},
		{"refused", contract.StepFailed,
			[]contract.Evidence{said(execute, "refused"), said(inspect, "absent")}, []contract.StepState{contract.StepInDoubt, contract.StepFailed}},
		{"absent, and sent again", contract.StepCommitted,
			[]contract.Evidence{said(execute, "unknown"), said(inspect, "absent"), said(inspect, "absent"), said(execute, "acknowledged")},
			[]contract.StepState{contract.StepInDoubt, contract.StepReconciling, contract.StepReconciling, contract.StepCommitted}},
		{"not executed", contract.StepExecuting,
			[]contract.Evidence{said(execute, "not_executed")}, []contract.StepState{contract.StepExecuting}},
		{"unknown", contract.StepUnknown,
			[]contract.Evidence{said(execute, "unknown"), said(inspect, "inconclusive")}, []contract.StepState{contract.StepInDoubt, contract.StepUnknown}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var states []contract.StepState
			for _, h := range happenings(contract.StepSnapshot{ID: "s", State: test.now, Evidence: test.evidence}) {
				states = append(states, h.after)
			}
			require.Equal(t, test.states, states)
		})
	}
}

func TestTheNarratorTellsEveryCallOnceInOrder(t *testing.T) {
	var out bytes.Buffer
	n := narrator{to: screen.Plainly(&out, 0)}
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	call := func(after time.Duration, kind contract.CallKind, word string) contract.Evidence {
		return contract.Evidence{Call: kind, Attempt: 1, Tool: word + "_tool", Said: word, At: at.Add(after)}
	}
	var recovered []string
	n.recovered = func(step string) { recovered = append(recovered, step) }

	tx := contract.Snapshot{Steps: []contract.StepSnapshot{
		{ID: "b", State: contract.StepInDoubt, Evidence: []contract.Evidence{call(2*time.Second, contract.CallExecute, "unknown")}},
		{ID: "a", State: contract.StepCommitted, Evidence: []contract.Evidence{call(time.Second, contract.CallExecute, "acknowledged")}},
	}}
	n.tell(tx)
	first := out.String()
	require.Less(t, strings.Index(first, "acknowledged_tool"), strings.Index(first, "unknown_tool"))
	require.Contains(t, first, "its owner is asked instead")

	out.Reset()
	tx.Steps[0].State = contract.StepRecovered
	tx.Steps[0].Evidence = append(tx.Steps[0].Evidence, call(3*time.Second, contract.CallInspect, "present"))
	n.tell(tx)
	n.tell(tx)
	require.NotContains(t, out.String(), "acknowledged_tool")
	require.Equal(t, 1, strings.Count(out.String(), "present_tool"))
	require.Equal(t, []string{"b"}, recovered)
}

func TestNearNames(t *testing.T) {
	require.Equal(t, []string{"absent"}, nearNames("abset", []string{"absent", "accepted"}))
	require.Empty(t, nearNames("nothing", []string{"absent", "accepted"}))
}

package view

import (
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// The exit codes of mcpx. Scripts depend on them.
const (
	ExitOK            = 0 // COMMITTED, or the command did what it was asked
	ExitFailed        = 1 // FAILED, REJECTED, or the command could not do its work
	ExitUsage         = 2 // the command line, a name or an input is wrong
	ExitWaiting       = 3 // a human has to decide
	ExitCompensated   = 4 // COMPENSATED
	ExitEffectsRemain = 5 // effects that are not wanted remain, or may
	ExitConflict      = 6 // the same intent with other arguments
)

// txLooks says for every state of a transaction which tone it is shown in, and which exit code it ends a command with
// that waits for the transaction. States in which nobody stops waiting have none.
var txLooks = map[contract.TxState]struct {
	tone screen.Tone
	exit int
}{
	contract.TxRunning:                      {tone: screen.Busy},
	contract.TxAwaitingStartApproval:        {screen.Wait, ExitWaiting},
	contract.TxAwaitingResolution:           {screen.Wait, ExitWaiting},
	contract.TxAwaitingCompensationApproval: {screen.Wait, ExitWaiting},
	contract.TxCompensating:                 {tone: screen.Busy},
	contract.TxCommitted:                    {screen.Good, ExitOK},
	contract.TxRejected:                     {screen.Bad, ExitFailed},
	contract.TxFailed:                       {screen.Bad, ExitFailed},
	contract.TxCompensated:                  {screen.Good, ExitCompensated},
	contract.TxPartiallyCompensated:         {screen.Bad, ExitEffectsRemain},
	contract.TxRetained:                     {screen.Bad, ExitEffectsRemain},
	contract.TxTerminated:                   {screen.Bad, ExitEffectsRemain},
}

// stepTones says for every state of a step which tone it is shown in.
var stepTones = map[contract.StepState]screen.Tone{
	contract.StepPending:            screen.Faint,
	contract.StepExecuting:          screen.Busy,
	contract.StepCommitted:          screen.Good,
	contract.StepInDoubt:            screen.Doubt,
	contract.StepReconciling:        screen.Doubt,
	contract.StepRecovered:          screen.Good,
	contract.StepUnknown:            screen.Wait,
	contract.StepFailed:             screen.Bad,
	contract.StepSkipped:            screen.Faint,
	contract.StepCompensating:       screen.Busy,
	contract.StepCompensated:        screen.Good,
	contract.StepCompensationFailed: screen.Wait,
	contract.StepNotCompensable:     screen.Bad,
}

// verdictTones says the same for what a look at an owner showed.
var verdictTones = map[contract.Verdict]screen.Tone{
	contract.Present:      screen.Good,
	contract.Absent:       screen.Good,
	contract.Inconclusive: screen.Doubt,
}

// ExitCode is the code that a command ends with when a transaction that it waited for has got to the state.
func ExitCode(state contract.TxState) int {
	look, ok := txLooks[state]
	if !ok {
		return ExitFailed
	}
	return look.exit
}

// State is the painted name of a transaction's state.
func State(s *screen.Screen, state contract.TxState) string {
	return s.Paint(txLooks[state].tone, screen.Clean(string(state)))
}

// StepState is the painted name of a step's state.
func StepState(s *screen.Screen, state contract.StepState) string {
	return s.Paint(stepTones[state], screen.Clean(string(state)))
}

func txCell(state contract.TxState) screen.Cell {
	return screen.Cell{Text: string(state), Tone: txLooks[state].tone}
}

func stepCell(state contract.StepState) screen.Cell {
	return screen.Cell{Text: string(state), Tone: stepTones[state]}
}

// saidCell shows what one call told.
func saidCell(said string) screen.Cell {
	cell := screen.Text(said)
	switch contract.OutcomeKind(said) {
	case contract.Acknowledged:
		cell.Tone = screen.Good
	case contract.Refused, contract.NotExecuted:
		cell.Tone = screen.Bad
	case contract.Unknown, contract.Reset:
		cell.Tone = screen.Doubt
	default:
		cell.Tone = verdictTones[contract.Verdict(said)]
	}
	return cell
}

// Said is the painted word for what one call told.
func Said(s *screen.Screen, said string) string {
	cell := saidCell(said)
	return s.Paint(cell.Tone, screen.Clean(cell.Text))
}

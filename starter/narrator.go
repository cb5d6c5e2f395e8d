package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// narrator tells what a transaction has done, call by call. Every call is in the evidence of its step, so nothing is
// missed where snapshots come seldom.
type narrator struct {
	to   *screen.Screen
	told map[string]bool
	// recovered, if set, is called for a step right after it was told that the step was recovered.
	recovered func(step string)
}

// happening is one call of one step, and the states of the step before and after it.
type happening struct {
	step string
	contract.Evidence
	before, after contract.StepState
}

// once tells whether something is told for the first time.
func (n *narrator) once(key string) bool {
	if n.told == nil {
		n.told = map[string]bool{}
	}
	first := !n.told[key]
	n.told[key] = true
	return first
}

// tell tells what is new in a snapshot, in the order in which it happened.
func (n *narrator) tell(tx contract.Snapshot) {
	var news []happening
	for _, step := range tx.Steps {
		for _, h := range happenings(step) {
			if n.once(fmt.Sprint(h.step, h.Call, h.Attempt, h.Said, h.At.UnixNano())) {
				news = append(news, h)
			}
		}
	}
	slices.SortStableFunc(news, func(a, b happening) int { return a.At.Compare(b.At) })
	for _, h := range news {
		n.call(h)
	}
}

// happenings are the calls of a step, each with the state that it led to.
func happenings(step contract.StepSnapshot) []happening {
	all := make([]happening, len(step.Evidence))
	state := contract.StepPending
	for i, e := range step.Evidence {
		all[i] = happening{step: step.ID, Evidence: e, before: state, after: after(state, e, step)}
		state = all[i].after
	}
	return all
}

// after is the state of a step after a call, as the rules of the transaction have it. What a look decided is seen from
// where the step is now.
func after(before contract.StepState, e contract.Evidence, step contract.StepSnapshot) contract.StepState {
	switch e.Call {
	case contract.CallExecute:
		switch contract.OutcomeKind(e.Said) {
		case contract.Acknowledged:
			return contract.StepCommitted
		case contract.Unknown, contract.Refused:
			return contract.StepInDoubt
		}
		return contract.StepExecuting
	case contract.CallCompensate:
		return contract.StepCompensating
	}
	verdict := contract.Verdict(e.Said)
	switch before {
	case contract.StepInDoubt, contract.StepReconciling:
		switch {
		case verdict == contract.Present && (step.State.InEffect() || step.State == contract.StepCompensated):
			return contract.StepRecovered
		case verdict == contract.Absent && step.State == contract.StepFailed:
			return contract.StepFailed
		case step.State == contract.StepUnknown:
			return contract.StepUnknown
		}
		return contract.StepReconciling
	case contract.StepCompensating:
		if verdict == contract.Absent {
			return contract.StepCompensated
		}
	}
	return before
}

// call tells of one call, and of what it means where that is worth a word.
func (n *narrator) call(h happening) {
	if h.Call == contract.CallInspect {
		switch {
		case h.before == contract.StepCommitted && n.once("look"):
			n.aside("Before anybody is asked, every owner is asked what is there.")
		case h.before.Settled() && !h.before.InEffect() && n.once("sweep"):
			n.aside("Before it closes, whatever was ever in doubt is looked at once more.")
		}
	}
	line := fmt.Sprintf("%s  %-8s  %-17s  %s  %s", n.to.Paint(screen.Faint, view.Clock(h.At)), screen.Clean(h.step), screen.Clean(h.Tool),
		pad(view.Said(n.to, h.Said), h.Said, len(contract.Acknowledged)), view.StepState(n.to, h.after))
	if h.Why != "" && h.Call != contract.CallInspect {
		line += "  " + n.to.Paint(screen.Faint, screen.Clean(h.Why))
	}
	n.to.Print(line)
	switch {
	case h.Call == contract.CallExecute && contract.OutcomeKind(h.Said) == contract.Unknown && n.once("doubt"):
		n.aside("It may be there, or it may not. Calling again could make a second one: its owner is asked instead.")
	case h.Call == contract.CallExecute && contract.OutcomeKind(h.Said) == contract.Refused && n.once("refused"):
		n.aside("A no that the contract believes. It is verified all the same.")
	case h.Call == contract.CallCompensate && n.once("compensate"):
		n.aside("The acknowledgement of an undo proves nothing: its owner is asked.")
	case h.after == contract.StepRecovered && h.before != contract.StepRecovered && n.recovered != nil:
		n.recovered(h.step)
	}
}

// pad fills painted text up to a width.
func pad(painted, text string, width int) string {
	return painted + strings.Repeat(" ", max(0, width-screen.Cells(screen.Clean(text))))
}

// aside is a word of explanation, under what happened.
func (n *narrator) aside(text string) {
	n.to.Printf("              %s", n.to.Wrap(n.to.Paint(screen.Faint, text), 14))
}

package contract

import "slices"

// StepState is where one step of a transaction is. The words are the same in JSON, on the command line, in search
// attributes and on screens.
type StepState string

// The states of a step.
const (
	StepPending            StepState = "PENDING"
	StepExecuting          StepState = "EXECUTING"
	StepCommitted          StepState = "COMMITTED"
	StepInDoubt            StepState = "IN_DOUBT"
	StepReconciling        StepState = "RECONCILING"
	StepRecovered          StepState = "RECOVERED"
	StepUnknown            StepState = "UNKNOWN"
	StepFailed             StepState = "FAILED"
	StepSkipped            StepState = "SKIPPED"
	StepCompensating       StepState = "COMPENSATING"
	StepCompensated        StepState = "COMPENSATED"
	StepCompensationFailed StepState = "COMPENSATION_FAILED"
	StepNotCompensable     StepState = "NOT_COMPENSABLE"
)

// stepStates is the table of the states of a step: what each means, and which may follow it. Anything that is not in
// it cannot happen: the workflow refuses to make another transition.
var stepStates = []struct {
	state   StepState
	meaning string
	next    []StepState
}{
	{StepPending, "its dependencies are not done",
		[]StepState{StepExecuting, StepSkipped, StepFailed, StepInDoubt}},
	{StepExecuting, "dispatched, or waiting to be",
		[]StepState{StepCommitted, StepInDoubt, StepFailed}},
	{StepCommitted, "acknowledged by the owner",
		[]StepState{StepCompensating, StepNotCompensable}},
	{StepInDoubt, "dispatched, and we do not know",
		[]StepState{StepReconciling, StepUnknown}},
	{StepReconciling, "the owner is being asked",
		[]StepState{StepRecovered, StepExecuting, StepFailed, StepUnknown}},
	{StepRecovered, "the owner has it and it is ours: counts as committed, and was not executed again",
		[]StepState{StepCompensating, StepNotCompensable}},
	{StepUnknown, "the owner cannot tell, or what is there may not be ours: stopped until a human resolves it",
		[]StepState{StepReconciling, StepCommitted, StepExecuting, StepFailed}},
	{StepFailed, "provably not in effect, and no retries left",
		[]StepState{StepPending, StepRecovered, StepUnknown}},
	{StepSkipped, "not started, because the transaction is stopping",
		[]StepState{StepPending, StepRecovered, StepUnknown}},
	{StepCompensating, "being undone",
		[]StepState{StepCompensated, StepCompensationFailed, StepCommitted, StepRecovered}},
	{StepCompensated, "undone, and verified absent",
		[]StepState{StepRecovered, StepUnknown}},
	{StepCompensationFailed, "still present after every attempt, or no longer recognisable as ours: a human decides",
		[]StepState{StepCompensating}},
	{StepNotCompensable, "committed, and its contract has no compensation: it stays",
		nil},
}

// StepStates lists the states of a step in the order in which a step passes them.
func StepStates() []StepState {
	states := make([]StepState, len(stepStates))
	for i, row := range stepStates {
		states[i] = row.state
	}
	return states
}

// Meaning says in a few words what the state means, or "" for a word that is not a state.
func (s StepState) Meaning() string {
	for _, row := range stepStates {
		if row.state == s {
			return row.meaning
		}
	}
	return ""
}

// CanBecome tells whether a step in state s may go to state next.
func (s StepState) CanBecome(next StepState) bool {
	for _, row := range stepStates {
		if row.state == s {
			return slices.Contains(row.next, next)
		}
	}
	return false
}

// InEffect tells whether the step's effect is known to be in the world.
func (s StepState) InEffect() bool {
	switch s {
	case StepCommitted, StepRecovered, StepCompensating, StepCompensationFailed, StepNotCompensable:
		return true
	}
	return false
}

// NeedsHuman tells whether a step in this state stays there until a human decides.
func (s StepState) NeedsHuman() bool { return s == StepUnknown || s == StepCompensationFailed }

// Settled tells whether nothing is going on for a step in this state.
func (s StepState) Settled() bool {
	switch s {
	case StepExecuting, StepInDoubt, StepReconciling, StepCompensating:
		return false
	}
	return true
}

// TxState is where a transaction as a whole is.
type TxState string

// The states of a transaction. The last seven are final.
const (
	TxRunning                      TxState = "RUNNING"
	TxAwaitingStartApproval        TxState = "AWAITING_START_APPROVAL"
	TxAwaitingResolution           TxState = "AWAITING_RESOLUTION"
	TxAwaitingCompensationApproval TxState = "AWAITING_COMPENSATION_APPROVAL"
	TxCompensating                 TxState = "COMPENSATING"
	TxCommitted                    TxState = "COMMITTED"
	TxRejected                     TxState = "REJECTED"
	TxFailed                       TxState = "FAILED"
	TxCompensated                  TxState = "COMPENSATED"
	TxPartiallyCompensated         TxState = "PARTIALLY_COMPENSATED"
	TxRetained                     TxState = "RETAINED"

	// TxTerminated is how a transaction is shown whose run was ended from outside before it reached a final state
	// (terminated, timed out): effects of it may remain.
	TxTerminated TxState = "TERMINATED"
)

// txStates is the table of the states of a transaction. remains: closed, and effects of it remain in the world
// (Temporal status Completed); closed without remains is Temporal status Failed.
var txStates = []struct {
	state           TxState
	meaning         string
	closed, remains bool
	human           bool
}{
	{state: TxRunning, meaning: "steps are being executed"},
	{state: TxAwaitingStartApproval, meaning: "a human must approve the start", human: true},
	{state: TxAwaitingResolution, meaning: "a human must say what became of a step", human: true},
	{state: TxAwaitingCompensationApproval, meaning: "a human must approve or decline the rollback", human: true},
	{state: TxCompensating, meaning: "the approved rollback is under way"},
	{state: TxCommitted, meaning: "every step is in effect", closed: true, remains: true},
	{state: TxRejected, meaning: "the start was declined, aborted or expired: nothing happened", closed: true},
	{state: TxFailed, meaning: "no step is in effect", closed: true},
	{state: TxCompensated, meaning: "every effect was undone and verified absent", closed: true},
	{state: TxPartiallyCompensated, meaning: "undone as far as possible: what remains is listed", closed: true, remains: true},
	{state: TxRetained, meaning: "a human declined the rollback: the effects stay", closed: true, remains: true},
	{state: TxTerminated, meaning: "ended from outside: effects may remain, recover it", closed: true, remains: true},
}

// TxStates lists the states of a transaction, final ones last.
func TxStates() []TxState {
	states := make([]TxState, len(txStates))
	for i, row := range txStates {
		states[i] = row.state
	}
	return states
}

// Meaning says in a few words what the state means, or "" for a word that is not a state.
func (s TxState) Meaning() string {
	for _, row := range txStates {
		if row.state == s {
			return row.meaning
		}
	}
	return ""
}

// Known tells whether s is one of the states.
func (s TxState) Known() bool { return s.Meaning() != "" }

// Closed tells whether the state is final.
func (s TxState) Closed() bool {
	for _, row := range txStates {
		if row.state == s {
			return row.closed
		}
	}
	return false
}

// EffectsRemain tells whether, in this final state, effects of the transaction are in the world. It decides the
// status that Temporal shows: Completed when effects remain, Failed when provably none does.
func (s TxState) EffectsRemain() bool {
	for _, row := range txStates {
		if row.state == s {
			return row.remains
		}
	}
	return false
}

// NeedsHuman tells whether a transaction in this state goes on only when a human decides.
func (s TxState) NeedsHuman() bool {
	for _, row := range txStates {
		if row.state == s {
			return row.human
		}
	}
	return false
}

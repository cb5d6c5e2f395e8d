package contract

import "time"

// Carried is what a run hands to the run that follows it: everything that the workflow knows, so that the next run goes
// on where this one stopped.
type Carried struct {
	Tx string `json:"tx"`
	// Runs are the runs before, since the start or the last Temporal reset: a decision may name any of them.
	Runs      []string  `json:"runs,omitempty"`
	Resolved  Resolved  `json:"resolved"`
	Requester string    `json:"requester,omitempty"`
	Started   time.Time `json:"started"`

	State     TxState       `json:"state"`
	Steps     []CarriedStep `json:"steps"`
	Decisions []Judged      `json:"decisions,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
	// Stopping says why nothing new is started, and Plans how many undo plans have been published.
	Stopping    string `json:"stopping,omitempty"`
	Plans       int    `json:"plans,omitempty"`
	Transitions int    `json:"transitions,omitempty"`

	// Ask is the question that a human is being asked.
	Ask *CarriedQuestion `json:"ask,omitempty"`
	// Undo is the undo plan in force, and Approved tells that it was approved.
	Undo     *UndoPlan `json:"undo,omitempty"`
	Approved bool      `json:"approved,omitempty"`
	// Ending is the final state that was reached, while the last looks are being made; Reason says why.
	Ending TxState `json:"ending,omitempty"`
	Reason string  `json:"reason,omitempty"`

	// Reset: the run before found out that it had been made by a Temporal reset. Every dispatched step is in doubt.
	Reset bool `json:"reset,omitempty"`
}

// CarriedQuestion is an open question to a human, with what has been said to it.
type CarriedQuestion struct {
	About     string    `json:"about"`
	Approvals []string  `json:"approvals,omitempty"`
	Answer    string    `json:"answer,omitempty"`
	Said      string    `json:"said,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
}

// CarriedStep is one step of Carried.
type CarriedStep struct {
	StepSnapshot
	Retries int `json:"retries,omitempty"`
	Idle    int `json:"idle,omitempty"`
	// Doubted: the step was in doubt at some time. Doubt is the kind of the last one, Why its reason, Horizon when
	// absence counts. Unsettled: the step was sent again without asking what became of that call.
	Doubted   bool      `json:"doubted,omitempty"`
	Doubt     string    `json:"doubt,omitempty"`
	Why       string    `json:"why,omitempty"`
	Horizon   time.Time `json:"horizon,omitzero"`
	Unsettled bool      `json:"unsettled,omitempty"`
	// Looked: a look before the first dispatch found nothing.
	Looked    bool      `json:"looked,omitempty"`
	Committed time.Time `json:"committed,omitzero"`
	// Suspect: another run may have dispatched the step, so its owner is asked before it is dispatched here.
	Suspect bool `json:"suspect,omitempty"`
	// Asserted: a human said that it is absent.
	Asserted bool `json:"asserted,omitempty"`
	// Resolution is what a human said of the step, and what has not been done yet.
	Resolution *Decision `json:"resolution,omitempty"`
	// Sent counts the compensations since a human last allowed them. UndoHorizon is when the owner has settled after
	// the last one, UndoAcknowledged whether it was acknowledged, UndoOpen whether it was taken and not finished.
	Sent             int       `json:"sent,omitempty"`
	UndoHorizon      time.Time `json:"undoHorizon,omitzero"`
	UndoAcknowledged bool      `json:"undoAcknowledged,omitempty"`
	UndoOpen         bool      `json:"undoOpen,omitempty"`
}

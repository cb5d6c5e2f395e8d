package contract

import "time"

// Carried is what a run hands to the run that follows it: everything that the workflow knows, so that the next run goes
// on where this one stopped.
type Carried struct {
	Tx        string    `json:"tx"`
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

	// Undo is the undo plan in force, and Approved tells that it was approved.
	Undo     *UndoPlan `json:"undo,omitempty"`
	Approved bool      `json:"approved,omitempty"`

	// Reset: the run before found out that it had been made by a Temporal reset. Every dispatched step is in doubt.
	Reset bool `json:"reset,omitempty"`
}

// CarriedStep is one step of Carried.
type CarriedStep struct {
	StepSnapshot
	Retries int `json:"retries,omitempty"`
	Idle    int `json:"idle,omitempty"`
	// Doubted: the step was in doubt at some time. Doubt is the kind of the last one, Horizon when absence counts.
	Doubted bool      `json:"doubted,omitempty"`
	Doubt   string    `json:"doubt,omitempty"`
	Horizon time.Time `json:"horizon,omitzero"`
	// Looked: a look before the first dispatch found nothing.
	Looked    bool      `json:"looked,omitempty"`
	Committed time.Time `json:"committed,omitzero"`
	// Suspect: another run may have dispatched the step, so its owner is asked before it is dispatched here.
	Suspect bool `json:"suspect,omitempty"`
}

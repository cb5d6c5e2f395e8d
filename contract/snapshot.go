package contract

import (
	"encoding/json"
	"time"
)

// Snapshot is a transaction as it stands: the answer of the query "snapshot".
type Snapshot struct {
	ID    string  `json:"id"`
	Run   string  `json:"run"`
	Tx    string  `json:"tx"`
	Plan  string  `json:"plan"`
	State TxState `json:"state"`
	// Reason says in one sentence why it is in this state, Waiting who must do what next.
	Reason  string `json:"reason,omitempty"`
	Waiting string `json:"waiting,omitempty"`

	Requester string          `json:"requester,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Started   time.Time       `json:"started"`
	Ended     time.Time       `json:"ended,omitzero"`

	Steps []StepSnapshot `json:"steps"`
	Undo  *UndoPlan      `json:"undo,omitempty"`
	// Decisions holds what humans said, the last ones, judged.
	Decisions []Judged `json:"decisions,omitempty"`
	// Notes are what a reader should know: a start by hand, warnings of the lint.
	Notes []string `json:"notes,omitempty"`

	Definition string `json:"definition,omitempty"`
	// Transitions counts state changes: two snapshots with the same number are the same.
	Transitions int `json:"transitions"`
}

// StepSnapshot is one step as it stands.
type StepSnapshot struct {
	ID    string    `json:"id"`
	Tool  string    `json:"tool"`
	State StepState `json:"state"`
	// Reason says in one sentence why it is in this state.
	Reason string    `json:"reason,omitempty"`
	Needs  []string  `json:"needs,omitempty"`
	Since  time.Time `json:"since,omitzero"`

	// Attempts counts executions that were handed to a worker, Undos compensations.
	Attempts int `json:"attempts"`
	Undos    int `json:"undos,omitempty"`

	// Args are shown whole only where they are small.
	Args   *Kept `json:"args,omitempty"`
	Result *Kept `json:"result,omitempty"`
	// Proof says how it is known that the effect is there, and ours.
	Proof Proof `json:"proof,omitempty"`
	// Unverified: FAILED at the owner's word alone.
	Unverified bool `json:"unverified,omitempty"`
	// Accepted: its compensation failed, and a human accepted that the effect stays.
	Accepted bool `json:"accepted,omitempty"`

	Evidence []Evidence `json:"evidence,omitempty"`
}

// Settled tells whether the transaction goes on by itself no more: it is closed, or waits for a human.
func (s Snapshot) Settled() bool { return s.State.Closed() || s.State.NeedsHuman() }

// Step returns the step with the given id.
func (s Snapshot) Step(id string) (StepSnapshot, bool) {
	for _, step := range s.Steps {
		if step.ID == id {
			return step, true
		}
	}
	return StepSnapshot{}, false
}

// ReceiptFormat names the shape of a Receipt.
const ReceiptFormat = "mcpx-receipt/1"

// Receipt is what remains of a closed transaction: its outcome with the evidence for it. It is the result of the
// workflow, or the details of the error that it fails with.
type Receipt struct {
	Format string `json:"format"`
	Snapshot
	// Digest is the SHA-256 over the canonical JSON of the receipt without this member.
	Digest string `json:"digest,omitempty"`
}

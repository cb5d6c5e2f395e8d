package contract

import (
	"encoding/json"
	"slices"
	"time"
)

// Decision is the one JSON object of every signal and update: what a human decided.
type Decision struct {
	// By names the human. It is recorded, not authenticated, unless the manifest holds approver keys.
	By string `json:"by,omitempty"`
	// Digest of the undo plan that was looked at. Without one, an approval counts only for the first published plan.
	Digest string `json:"digest,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Run, Step, Attempt, As and Result are for resolve-step (and Run and Attempt for resume): which step of which
	// run is meant, and what became of it.
	Run     string          `json:"run,omitempty"`
	Step    string          `json:"step,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	As      Resolution      `json:"as,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// Resolution is what a human says of a step that MCPx cannot decide.
type Resolution string

// The resolutions. The first three are for an UNKNOWN step, the last two for one whose compensation failed.
const (
	ResolveCommitted Resolution = "committed"
	ResolveAbsent    Resolution = "absent"
	ResolveInspect   Resolution = "inspect"
	ResolveRetry     Resolution = "retry"
	ResolveAccepted  Resolution = "accepted"
)

// Resolutions lists every resolution.
var Resolutions = []Resolution{ResolveCommitted, ResolveAbsent, ResolveInspect, ResolveRetry, ResolveAccepted}

// Judged is a decision with what became of it. Decisions that arrive early, late, twice or malformed are recorded with
// the reason, and never consumed later.
type Judged struct {
	Signal   string    `json:"signal"`
	Decision Decision  `json:"decision"`
	At       time.Time `json:"at"`
	Accepted bool      `json:"accepted"`
	// Why says what the decision did, or why it did nothing.
	Why string `json:"why"`
}

// UndoPlan is what a human is asked to allow: exactly these compensations, in these waves.
type UndoPlan struct {
	// Version counts the plans published for one transaction.
	Version int `json:"version"`
	// Run and Tx say which run of which transaction, Definition which plan, contracts and servers.
	Run        string `json:"run"`
	Tx         string `json:"tx"`
	Definition string `json:"definition"`
	// Digest covers all of the above, Waves and Kept.
	Digest string `json:"digest,omitempty"`

	// Waves run one after another, the steps of one in parallel.
	Waves [][]Undo `json:"waves"`
	// Kept are effects that will stay, each with the reason.
	Kept []Residue `json:"kept,omitempty"`

	Published time.Time `json:"published"`
	Expires   time.Time `json:"expires,omitzero"`
}

// Undo is one compensation of an undo plan.
type Undo struct {
	Step string `json:"step"`
	// Undoes is the "server/tool" whose effect is undone; Tool and Args the call that undoes it.
	Undoes string          `json:"undoes"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	// Seen is what the last look showed, and Effect its mapped result; Proof says why the effect is ours.
	Seen Verdict `json:"seen"`
	// Why says what an inconclusive look lacked. The digest does not cover it.
	Why    string          `json:"why,omitempty"`
	Effect json.RawMessage `json:"effect,omitempty"`
	Proof  Proof           `json:"proof"`
	// ArgsDigest and EffectDigest stand for arguments and a mapped result that are too large to be shown.
	ArgsDigest   string `json:"argsDigest,omitempty"`
	EffectDigest string `json:"effectDigest,omitempty"`
}

// Residue is an effect that stays.
type Residue struct {
	Step string `json:"step"`
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// Covered is the part of an undo plan that its digest covers: everything that an approver has to see, and nothing that
// changes by itself (times, raw responses). The caller digests its canonical JSON.
func (p UndoPlan) Covered() any {
	waves := make([][]Undo, len(p.Waves))
	for i, wave := range p.Waves {
		waves[i] = slices.Clone(wave)
		for j := range waves[i] {
			waves[i][j].Why = ""
		}
	}
	return struct {
		Format     string    `json:"format"`
		Version    int       `json:"version"`
		Run        string    `json:"run"`
		Tx         string    `json:"tx"`
		Definition string    `json:"definition"`
		Waves      [][]Undo  `json:"waves"`
		Kept       []Residue `json:"kept"`
	}{"mcpx-undo-plan/1", p.Version, p.Run, p.Tx, p.Definition, waves, p.Kept}
}

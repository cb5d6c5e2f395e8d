package contract

import "encoding/json"

// Start is the one argument of the workflow Transaction. People may type it into Temporal's UI: {"plan": …, "input": …}
// is enough.
type Start struct {
	// Plan names a plan of the worker's manifest.
	Plan string `json:"plan,omitempty"`
	// Input is the plan's input; it must satisfy the plan's schema.
	Input json.RawMessage `json:"input,omitempty"`

	// Requester is who asked, as far as it is known. Four eyes counts it.
	Requester string `json:"requester,omitempty"`

	// Identity is set by MCPx's own clients. A start without it was made by hand: it is not deduplicated beyond its
	// workflow ID, and its snapshot says so.
	Identity *Identity `json:"identity,omitempty"`

	// Carried is set only by the workflow itself, when it continues as a new run.
	Carried *Carried `json:"carried,omitempty"`
}

// Identity is what a later start of the same intent is compared with: the same logical keys with other arguments,
// another plan or other servers are a conflict.
type Identity struct {
	// Fingerprint of the logical keys.
	Fingerprint string `json:"fingerprint"`
	// Definition is the digest of the plan with its contracts and servers, as the starting client knew them.
	Definition string `json:"definition"`
	// Inputs holds a digest for each member of the input that counts.
	Inputs map[string]string `json:"inputs,omitempty"`
	// Generation tells deliberate repetitions of one intent apart: 0 for the first.
	Generation int `json:"generation,omitempty"`
}

// Definition is a plan, resolved against the manifest of the worker that started it and pinned into the transaction.
type Definition struct {
	Plan        string `json:"plan"`
	Description string `json:"description,omitempty"`
	// Digest over everything below. It tells whether two starts mean the same plan, contracts and servers.
	Digest string `json:"digest"`

	Steps   []Step               `json:"steps"`
	Tools   map[string]Tool      `json:"tools"`   // by "server/tool"
	Servers map[string]ServerRef `json:"servers"` // by local name

	Approval Approval `json:"approval"`
	TTL      Duration `json:"ttl"`

	// Warnings of the lint, for people.
	Warnings []string `json:"warnings,omitempty"`
}

// Approval is what a plan asks of humans.
type Approval struct {
	// Start: "auto", or "required" when a human must approve before anything runs.
	Start string `json:"start,omitempty"`
	// Quorum is how many different people must approve; FourEyes: none of them may be the requester.
	Quorum   int      `json:"quorum"`
	FourEyes bool     `json:"fourEyes,omitempty"`
	Expires  Duration `json:"expires"`
}

// ApprovalRequired is the value of Approval.Start that asks for a human before anything runs.
const ApprovalRequired = "required"

// Step is one operation of a plan.
type Step struct {
	ID string `json:"id"`
	// Tool is "server/tool", a key of Definition.Tools.
	Tool string   `json:"tool"`
	Args Template `json:"args,omitempty"`
	// Needs holds every step that this one waits for: those it names and those its arguments refer to.
	Needs []string `json:"needs,omitempty"`
	// NotAfter is how long after the transaction's start the step may still be dispatched; 0: for ever.
	NotAfter Duration `json:"notAfter,omitempty"`
	// Keep are the paths in the step's result that later steps, its inspector or its compensator refer to. They are
	// kept exactly, however large the result.
	Keep []string `json:"keep,omitempty"`
}

// Resolved is what the activity Resolve answers: the definition, and what the worker can do.
type Resolved struct {
	Definition Definition `json:"definition"`
	// SearchAttributes tells whether MCPx's search attributes are registered.
	SearchAttributes bool `json:"searchAttributes"`
	// Input is the input with the schema's defaults filled in.
	Input json.RawMessage `json:"input,omitempty"`
}

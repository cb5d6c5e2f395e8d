package contract

import (
	"encoding/json"
	"strconv"
	"time"
)

// OutcomeKind is what one mutating call told us.
type OutcomeKind string

// The outcomes of Execute and Compensate.
const (
	// Acknowledged: the owner said yes.
	Acknowledged OutcomeKind = "acknowledged"
	// Refused: the owner said no, and the contract says that this answer is to be believed.
	Refused OutcomeKind = "refused"
	// NotExecuted: the call provably never reached the application, or was past its write deadline.
	NotExecuted OutcomeKind = "not_executed"
	// Unknown: something may have been written, and we do not know what became of it.
	Unknown OutcomeKind = "unknown"
	// Reset: the activity belongs to a run that was made by a Temporal reset. It touched nothing.
	Reset OutcomeKind = "reset"
)

// Written is how far the bytes of a call got.
type Written string

// How far a call got. Only NotWritten proves that nothing happened.
const (
	NotWritten   Written = "nothing"
	MaybeWritten Written = "maybe"
	FullyWritten Written = "all"
	Answered     Written = "answered"
)

// CallKind says why a call was made.
type CallKind string

// The kinds of calls.
const (
	CallExecute    CallKind = "execute"
	CallInspect    CallKind = "inspect"
	CallCompensate CallKind = "compensate"
)

// ToolError is an error answer of an owner.
type ToolError struct {
	// Code as text: "NOT_FOUND", "-32602", or "" where none was given.
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Outcome is the answer of the activities Execute and Compensate. They report what they saw as data; Temporal errors
// are left for what Temporal itself has to say.
type Outcome struct {
	Kind OutcomeKind `json:"kind"`
	// Why says in one sentence what happened.
	Why string `json:"why,omitempty"`

	// Result of an acknowledged call, exactly or reduced: see Kept.
	Result *Kept `json:"result,omitempty"`
	// Error of a refused call, or the error answer that proved nothing.
	Error *ToolError `json:"error,omitempty"`

	// Unverified: the refusal is at the owner's word, because the tool has no contract of its own.
	Unverified bool `json:"unverified,omitempty"`
	// Answered: an answer came, though it proves nothing. The owner has finished then, and absence counts sooner.
	Answered bool `json:"answered,omitempty"`
	// Open: the owner has taken the call and not finished it (a task, a request for input). It may take effect at any
	// time, so that a look that finds nothing proves nothing.
	Open bool `json:"open,omitempty"`
	// RetryAfter is how long the owner asked us to wait.
	RetryAfter Duration `json:"retryAfter,omitempty"`
	// WriteDeadline is the moment after which this attempt writes nothing any more.
	WriteDeadline time.Time `json:"writeDeadline,omitzero"`

	Evidence Evidence `json:"evidence"`
}

// Verdict is what a look at the owner showed.
type Verdict string

// The verdicts.
const (
	Present      Verdict = "present"
	Absent       Verdict = "absent"
	Inconclusive Verdict = "inconclusive"
)

// Look is the answer of the activity Inspect.
type Look struct {
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Result is what the contract's inspect.result makes of the response, if present.
	Result   *Kept    `json:"result,omitempty"`
	Evidence Evidence `json:"evidence"`
	// Late is an answer to the call in question that came after its caller had stopped waiting.
	Late *Evidence `json:"late,omitempty"`
}

// InspectAttempts is how often a look is tried where the inspector fails: 100 ms after the first failure, then doubling
// up to 5 s. The last attempt answers inconclusive.
const InspectAttempts = 6

// Evidence is the record of one call: what was asked, what was answered, when, by whom, on which attempt.
type Evidence struct {
	Call    CallKind `json:"call"`
	Attempt int      `json:"attempt,omitempty"`
	Tool    string   `json:"tool"`
	// Asked is the head of the SHA-256 of the arguments.
	Asked string `json:"asked,omitempty"`
	// Said is the outcome or the verdict, in one word.
	Said string `json:"said"`
	Why  string `json:"why,omitempty"`
	// Answer is the head of an error answer, without the server's configured secrets.
	Answer  string    `json:"answer,omitempty"`
	Written Written   `json:"written,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Took    Duration  `json:"took,omitempty"`
	// By is the worker that made the call.
	By string `json:"by,omitempty"`
	// Late: an answer that came after we had stopped waiting.
	Late bool `json:"late,omitempty"`
}

// Kept is a result as a transaction keeps it. Value is exact unless Reduced; a reduced value holds the paths that later
// calls refer to, exactly, and the digest speaks for the rest.
type Kept struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Digest  string          `json:"digest,omitempty"`
	Size    int             `json:"size"`
	Reduced bool            `json:"reduced,omitempty"`
}

// CallID names one attempt of one step, for the answer that may come late.
func CallID(tx, step string, kind CallKind, attempt int) string {
	return tx + "/" + step + "/" + string(kind) + "/" + strconv.Itoa(attempt)
}

// TxRef is what a call tells its activity about the transaction.
type TxRef struct {
	// ID is tx.id: the first run ID of the generation, the same over retries and continued runs.
	ID string `json:"id"`
	// Run is the run that decided to make the call. After a Temporal reset the activity finds itself in another one,
	// and touches nothing.
	Run string `json:"run"`
}

// Call is the argument of Execute and Compensate.
type Call struct {
	Tx      TxRef     `json:"tx"`
	Server  ServerRef `json:"server"`
	Step    string    `json:"step"`
	Attempt int       `json:"attempt"`

	Tool          string          `json:"tool"`
	Args          json.RawMessage `json:"args,omitempty"`
	Timeout       Duration        `json:"timeout"`
	Refuse        string          `json:"refuse,omitempty"`
	TrustRefusals bool            `json:"trustRefusals,omitempty"`
	// Keep are the result paths that must stay exact.
	Keep []string `json:"keep,omitempty"`
}

// Inspection is the argument of Inspect.
type Inspection struct {
	Tx      TxRef     `json:"tx"`
	Server  ServerRef `json:"server"`
	Step    string    `json:"step"`
	Attempt int       `json:"attempt"`

	Tool    string          `json:"tool"`
	Query   json.RawMessage `json:"query,omitempty"`
	Timeout Duration        `json:"timeout"`

	Present string   `json:"present"`
	Absent  string   `json:"absent"`
	Map     Template `json:"map,omitempty"`
	Keep    []string `json:"keep,omitempty"`

	// Args and Result of the step, for the conditions. Result is null where the step has not been acknowledged.
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

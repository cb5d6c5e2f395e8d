package contract

// Risk is how careful MCPx has to be with a tool.
type Risk string

// The risks. A tool whose contract names none is critical.
const (
	// RiskReadOnly changes nothing: it may be called again without asking.
	RiskReadOnly Risk = "read_only"
	// RiskIdempotent is safe to send again with the same arguments, without asking first.
	RiskIdempotent Risk = "idempotent"
	// RiskCritical must not happen twice: it is never sent again until its owner has been asked.
	RiskCritical Risk = "critical"
)

// Tool is the contract of one tool: execute → inspect → compensate. It is pinned into every transaction that uses it,
// so that an edited manifest never changes one in flight.
type Tool struct {
	// Server and Name say which tool of which server; Risk how careful to be.
	Server string `json:"server"`
	Name   string `json:"name"`
	Risk   Risk   `json:"risk"`

	// Key holds the logical keys: the argument paths that make two calls the same intent. KeyAll takes every
	// argument. Neither: calls have no identity beyond being in flight.
	Key    []string `json:"key,omitempty"`
	KeyAll bool     `json:"keyAll,omitempty"`
	// Volatile are arguments that may differ without being a conflict.
	Volatile []string `json:"volatile,omitempty"`
	// Sensitive are paths, in arguments and results, whose values are secret.
	Sensitive []string `json:"sensitive,omitempty"`

	// Timeout ends the time in which an attempt may still start to write (its write deadline is the start of the
	// activity plus this).
	Timeout Duration `json:"timeout"`
	// Retries is how many times the tool may be executed again after its absence was proven.
	Retries int `json:"retries"`
	// Settle is the longest time the owner may take to finish what it has received, and the longest that the
	// inspector may lag behind.
	Settle Duration `json:"settle"`
	// TTL is how long the same intent is answered with the same outcome, from its end.
	TTL Duration `json:"ttl,omitempty"`

	// Refuse is a CEL condition over error: which error answers are definite refusals. TrustRefusals: all are.
	Refuse        string `json:"refuse,omitempty"`
	TrustRefusals bool   `json:"trustRefusals,omitempty"`

	// OursByKey: the logical keys identify the effect, so whoever finds it may take it for this intent's.
	OursByKey bool `json:"oursByKey,omitempty"`

	Inspect    *Inspect    `json:"inspect,omitempty"`
	Compensate *Compensate `json:"compensate,omitempty"`

	// Invalidates lists tools of the same server whose receipts a call of this one ends.
	Invalidates []string `json:"invalidates,omitempty"`
}

// Ref is "server/tool".
func (t Tool) Ref() string { return t.Server + "/" + t.Name }

// Compensable tells whether the tool's effect can be undone with proof: a compensator without an inspector cannot be
// verified, and does not count.
func (t Tool) Compensable() bool { return t.Compensate != nil && t.Inspect != nil }

// Proof is what makes an inspector's "present" a proof that the effect is this transaction's own.
type Proof string

// The proofs.
const (
	// ProofTx: the condition mentions tx.id, which was passed to the owner.
	ProofTx Proof = "tx.id"
	// ProofResult: the condition compares with the step's own acknowledged result.
	ProofResult Proof = "result"
	// ProofKey: the contract declares that the logical keys identify the effect.
	ProofKey Proof = "key"
	// ProofLook: a look before the first dispatch in this run found it absent.
	ProofLook Proof = "look"
	// ProofHuman: a human said so.
	ProofHuman Proof = "human"
	// ProofAnswer: the owner acknowledged the call itself.
	ProofAnswer Proof = "acknowledged"
)

// Inspect asks the owner what is there. It only reads, so it may be asked again.
type Inspect struct {
	// Tool of the same server, or "server/tool".
	Server string   `json:"server"`
	Tool   string   `json:"tool"`
	Args   Template `json:"args,omitempty"`

	// Present and Absent are CEL conditions over response, error, args, result and tx. Neither true, or both:
	// inconclusive. A condition that fails to evaluate is not true.
	Present string `json:"present"`
	Absent  string `json:"absent"`

	// Result makes, from the response, what a recovered step hands to later steps: a template over response, args
	// and tx. Without it a recovered step hands over the response itself.
	Result Template `json:"result,omitempty"`

	// Before looks also before the first dispatch: what is already there is a conflict.
	Before bool `json:"before,omitempty"`

	// Proves says what a true Present proves by its own text: ProofTx, ProofResult. Found at load.
	Proves []Proof `json:"proves,omitempty"`

	// Timeout of one look.
	Timeout Duration `json:"timeout"`
}

// Compensate undoes the effect of a tool. It is a mutation, with the same deadline and the same doubt.
type Compensate struct {
	Server string   `json:"server"`
	Tool   string   `json:"tool"`
	Args   Template `json:"args,omitempty"`

	// Retries is how many times it may be sent again while the effect is still there.
	Retries int      `json:"retries"`
	Timeout Duration `json:"timeout"`
	// Settle of the compensator: how long the effect may still show after it.
	Settle Duration `json:"settle"`
	// Within is how long after the commit undoing is possible; 0: for ever.
	Within Duration `json:"within,omitempty"`
}

package contract

import (
	"slices"
	"strings"
)

// Names under which a transaction is known to Temporal. They are an interface: people type them into Temporal's own
// UI and CLI, and running transactions depend on them.
const (
	// WorkflowTransaction is the workflow type of every transaction.
	WorkflowTransaction = "Transaction"

	// TaskQueue is where workflow tasks and control activities run. The calls to one server have a queue of
	// their own: see Server.Queue.
	TaskQueue = "mcpx"

	// Namespace is the Temporal namespace that MCPx creates for itself.
	Namespace = "mcpx"

	// QuerySnapshot answers with a Snapshot, for a running transaction as for a closed one.
	QuerySnapshot = "snapshot"
)

// Signals of a transaction, each with one JSON object (type Decision). Updates of the same names validate and answer;
// the signal is always enough.
const (
	SignalApproveStart        = "approve-start"
	SignalRejectStart         = "reject-start"
	SignalApproveCompensation = "approve-compensation"
	SignalRejectCompensation  = "reject-compensation"
	SignalResume              = "resume"
	SignalResolveStep         = "resolve-step"
	SignalAbort               = "abort"
)

// Signals lists every signal with the sentence that Temporal's UI shows for it.
var Signals = []struct{ Name, Description string }{
	{SignalApproveStart, `Let the transaction start. {"by": "who", "reason": "why"}`},
	{SignalRejectStart, `Decline the start; nothing has happened and nothing will. {"by": "who", "reason": "why"}`},
	{SignalApproveCompensation, `Approve the published undo plan. {"by": "who", "digest": "of the plan", "reason": "why"}`},
	{SignalRejectCompensation, `Decline the rollback; the effects stay. {"by": "who", "reason": "why"}`},
	{SignalResume, `Try the failed steps again instead of rolling back. {"by": "who", "reason": "why"}`},
	{SignalResolveStep, `Say what became of a step. {"by": "who", "step": "id", "as": "committed|absent|inspect|retry|accepted", "result": {}, "reason": "why"}`},
	{SignalAbort, `Stop: start nothing new, settle what is in flight, then ask about the rollback. {"by": "who", "reason": "why"}`},
}

// Activities by their registered names.
const (
	ActivityResolve    = "Resolve"
	ActivityGeneration = "Generation"
	ActivityExecute    = "Execute"
	ActivityInspect    = "Inspect"
	ActivityCompensate = "Compensate"
)

// Search attributes. The two of type Keyword hold one word each, the list holds "server/tool" names.
const (
	SearchState = "McpxState"
	SearchPlan  = "McpxPlan"
	SearchTools = "McpxTools"
)

// SearchTools lists the tools of a definition for the search attribute, each once, and as many as Temporal takes: the
// values of one attribute may have 2 KiB.
func (d Definition) SearchTools() []string {
	const limit, quotes = 2000, 3
	var tools []string
	size := 0
	for _, step := range d.Steps {
		name := Keyword(step.Tool)
		if slices.Contains(tools, name) {
			continue
		}
		if size += len(name) + quotes; size > limit {
			break
		}
		tools = append(tools, name)
	}
	return tools
}

// Keyword cuts a text to what a search attribute of type Keyword holds on every server: 255 bytes.
func Keyword(text string) string {
	const limit = 255
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// ErrorStart is the type of the error that a transaction fails with when it cannot start: an unknown plan, an input
// that breaks the plan's schema, a plan too large. Nothing was dispatched. Other failures carry the name of the final
// state (FAILED, REJECTED, COMPENSATED) as their type and the Receipt as their details.
const ErrorStart = "InvalidStart"

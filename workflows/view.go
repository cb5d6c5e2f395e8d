package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

var (
	searchState = temporal.NewSearchAttributeKeyKeyword(contract.SearchState)
	searchPlan  = temporal.NewSearchAttributeKeyKeyword(contract.SearchPlan)
	searchTools = temporal.NewSearchAttributeKeyKeywordList(contract.SearchTools)
)

// Limits of what is kept and shown. Temporal refuses values above 2 MiB, so a transaction of a thousand steps has to be
// measured before it is written down.
const (
	evidenceShown = 16        // calls per step, the last ones
	keptInline    = 64 << 10  // bytes of results kept whole, over all steps
	argsShown     = 2 << 10   // bytes of one step's arguments
	shownBudget   = 512 << 10 // bytes of arguments and evidence, over all steps
	receiptLimit  = 1536 << 10
	maxKeyword    = 255
	detailRows    = 40
)

// index keeps the search attributes up to date, where they are registered. It writes only what has changed.
func (t *transaction) index() {
	if !t.resolved.SearchAttributes {
		return
	}
	current := workflow.GetTypedSearchAttributes(t.ctx)
	var updates []temporal.SearchAttributeUpdate
	if plan, ok := current.GetKeyword(searchPlan); !ok || plan != t.resolved.Definition.Plan {
		updates = append(updates, searchPlan.ValueSet(cut(t.resolved.Definition.Plan, maxKeyword)),
			searchTools.ValueSet(SearchTools(t.resolved.Definition)))
	}
	if state, ok := current.GetKeyword(searchState); !ok || state != string(t.state) {
		updates = append(updates, searchState.ValueSet(string(t.state)))
	}
	if len(updates) == 0 {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(t.ctx, updates...); err != nil {
		panic(err)
	}
}

// SearchTools lists the tools of a definition for the search attribute, each once.
func SearchTools(def contract.Definition) []string {
	var tools []string
	for _, s := range def.Steps {
		if name := cut(s.Tool, maxKeyword); !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	return tools
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// record keeps the evidence of a call.
func (t *transaction) record(s *step, e contract.Evidence) {
	if e.Call == "" {
		return
	}
	s.evidence = append(s.evidence, e)
	if extra := len(s.evidence) - evidenceShown; extra > 0 {
		s.evidence = slices.Delete(s.evidence, 0, extra)
	}
	t.changed()
}

// keep takes a result into the workflow's state: whole while there is room, else the paths that others refer to. The
// event of the call holds it whole.
func (t *transaction) keep(s *step, result *contract.Kept) *contract.Kept {
	if result == nil {
		return nil
	}
	if t.keptBytes+len(result.Value) > keptInline {
		result = result.Slim(s.def.Keep, 0)
	}
	t.keptBytes += len(result.Value)
	return result
}

// snapshot is the transaction as it stands.
func (t *transaction) snapshot() contract.Snapshot {
	info := workflow.GetInfo(t.ctx)
	snapshot := contract.Snapshot{
		ID: info.WorkflowExecution.ID, Run: t.tx.Run, Tx: t.tx.ID,
		Plan: t.start.Plan, State: t.state, Reason: t.reason, Waiting: t.waiting(),
		Requester: t.requester, Input: contract.Keep(t.input(), nil, 64<<10).Raw(), Started: t.started, Ended: t.ended,
		Undo: t.undo, Decisions: t.decisions, Notes: t.notes,
		Definition: t.resolved.Definition.Digest, Transitions: t.transitions,
	}
	evidence := min(evidenceShown, max(2, 2*shownBudget/(1+len(t.steps))/1024))
	for _, s := range t.steps {
		snapshot.Steps = append(snapshot.Steps, t.show(s, evidence))
	}
	return snapshot
}

// show is one step as it stands, with the given number of calls as evidence.
func (t *transaction) show(s *step, evidence int) contract.StepSnapshot {
	shown := contract.StepSnapshot{
		ID: s.def.ID, Tool: s.def.Tool, State: s.state, Reason: s.reason, Needs: s.def.Needs, Since: s.since,
		Attempts: s.attempts, Undos: s.undos, Result: s.result, Proof: s.proof,
		Unverified: s.unverified, Accepted: s.accepted,
		Evidence: s.evidence[max(0, len(s.evidence)-evidence):],
	}
	if s.attempts > 0 {
		if args, err := t.args(s); err == nil {
			shown.Args = contract.Keep(args, nil, min(argsShown, shownBudget/len(t.steps)))
		}
	}
	return shown
}

// receipt is what remains of the transaction.
func (t *transaction) receipt() *contract.Receipt {
	receipt := &contract.Receipt{Format: contract.ReceiptFormat, Snapshot: t.snapshot()}
	for evidence := evidenceShown; len(encode(receipt)) > receiptLimit && evidence > 0; evidence /= 2 {
		for i := range receipt.Steps {
			step := &receipt.Steps[i]
			step.Args = step.Args.Slim(nil, 0)
			step.Evidence = step.Evidence[max(0, len(step.Evidence)-evidence/2):]
		}
	}
	receipt.Digest = digest(receipt)
	return receipt
}

// waiting says who must do what next.
func (t *transaction) waiting() string {
	switch t.state {
	case contract.TxAwaitingStartApproval:
		return "a human: approve-start or reject-start"
	case contract.TxAwaitingCompensationApproval:
		if t.ask == nil {
			return ""
		}
		return fmt.Sprintf("a human: approve-compensation, reject-compensation or resume (%d of %d approvals)",
			len(t.ask.approvals), t.ask.quorum)
	case contract.TxAwaitingResolution:
		return "a human: resolve-step"
	}
	return ""
}

// describe keeps the current details, which Temporal's own UI shows, up to date: a live table of the steps. It writes
// no event.
func (t *transaction) describe(ctx workflow.Context) {
	for {
		if err := workflow.Await(ctx, func() bool { return t.dirty }); err != nil {
			return
		}
		t.refresh()
	}
}

func (t *transaction) refresh() {
	t.dirty = false
	workflow.SetCurrentDetails(t.ctx, t.details())
}

// details is the transaction in Markdown. Text that comes from elsewhere is escaped.
func (t *transaction) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · %s\n\n", t.state, markdown(t.headlineReason()))
	if w := t.waiting(); w != "" {
		fmt.Fprintf(&b, "Waiting for %s\n\n", w)
	}
	b.WriteString("| step | tool | state | attempts | why |\n|---|---|---|---|---|\n")
	rows := 0
	for _, s := range t.steps {
		if len(t.steps) > detailRows && (s.state == contract.StepPending || s.state == contract.StepCommitted) || rows >= detailRows {
			continue
		}
		rows++
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", markdown(s.def.ID), markdown(s.def.Tool), s.state, s.attempts, markdown(cut(s.reason, 200)))
	}
	if left := len(t.steps) - rows; left > 0 {
		fmt.Fprintf(&b, "\nand %d more steps\n", left)
	}
	if t.undo != nil && !t.state.Closed() {
		fmt.Fprintf(&b, "\nUndo plan %d, digest `%.*s`\n\n", t.undo.Version, shortDigest, t.undo.Digest)
		shown := 0
		for i, wave := range t.undo.Waves {
			for _, undo := range wave {
				if shown++; shown > detailRows {
					continue
				}
				fmt.Fprintf(&b, "%d. wave %d: `%s` undoes %s (seen %s)\n", shown, i+1, undo.Tool, markdown(undo.Step), undo.Seen)
			}
		}
		for _, kept := range t.undo.Kept[:min(len(t.undo.Kept), detailRows)] {
			fmt.Fprintf(&b, "- stays: %s: %s\n", markdown(kept.Step), markdown(kept.Why))
		}
	}
	return b.String()
}

func (t *transaction) headlineReason() string {
	if t.reason != "" {
		return cut(t.reason, 400)
	}
	return t.state.Meaning()
}

// markdownEscape makes text that comes from elsewhere harmless inside a Markdown table.
var markdownEscape = strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", "[", `\[`, "`", "'", "*", `\*`)

func markdown(s string) string { return markdownEscape.Replace(s) }

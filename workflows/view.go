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
	evidenceShown = 16         // calls per step, the last ones
	keptInline    = 64 << 10   // bytes of results kept whole, over all steps
	argsShown     = 2 << 10    // bytes of one step's arguments
	inputShown    = 64 << 10   // bytes of the input
	undoShown     = 256 << 10  // bytes of an undo plan's arguments, over all steps, and of what the looks showed
	notesShown    = 50         // notes
	valueLimit    = 1536 << 10 // bytes of a snapshot, a receipt, or what is carried over
	detailsLimit  = 16 << 10   // bytes of the current details: Temporal cuts at 20,000
	detailRows    = 40
)

// index keeps the search attributes up to date, where they are registered. It writes only what has changed.
func (t *transaction) index() {
	if !t.resolved.SearchAttributes {
		return
	}
	current := workflow.GetTypedSearchAttributes(t.ctx)
	var updates []temporal.SearchAttributeUpdate
	name := contract.Keyword(t.resolved.Definition.Plan)
	if plan, ok := current.GetKeyword(searchPlan); !ok || plan != name {
		updates = append(updates, searchPlan.ValueSet(name), searchTools.ValueSet(t.resolved.Definition.SearchTools()))
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

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// record keeps the evidence of a call.
func (t *transaction) record(s *step, e contract.Evidence) {
	if e.Call == "" || e.Late && slices.ContainsFunc(s.evidence, func(known contract.Evidence) bool {
		return known.Late && known.Attempt == e.Attempt
	}) {
		return
	}
	s.evidence = append(s.evidence, e)
	if extra := len(s.evidence) - evidenceShown; extra > 0 {
		s.evidence = slices.Delete(s.evidence, 0, extra)
	}
	t.changed()
}

// snapshot is the transaction as it stands.
func (t *transaction) snapshot() contract.Snapshot {
	info := workflow.GetInfo(t.ctx)
	snapshot := contract.Snapshot{
		ID: info.WorkflowExecution.ID, Run: t.tx.Run, Tx: t.tx.ID,
		Plan: t.start.Plan, State: t.state, Reason: t.reason, Waiting: t.waiting(),
		Requester: t.requester, Input: contract.Keep(t.input(), nil, inputShown).Raw(), Started: t.started, Ended: t.ended,
		Undo: t.undo, Decisions: t.decisions, Notes: t.notes[:min(len(t.notes), notesShown)],
		Definition: t.resolved.Definition.Digest, Transitions: t.transitions,
	}
	for _, s := range t.steps {
		shown := t.show(s)
		if s.attempts > 0 {
			if args, err := t.args(s); err == nil {
				shown.Args = contract.Keep(args, nil, argsShown)
			}
		}
		snapshot.Steps = append(snapshot.Steps, shown)
	}
	for _, less := range reductions(func(change func(*contract.StepSnapshot)) {
		for i := range snapshot.Steps {
			change(&snapshot.Steps[i])
		}
	}) {
		if len(encode(snapshot)) <= valueLimit {
			break
		}
		less()
	}
	return snapshot
}

// show is one step as it stands.
func (t *transaction) show(s *step) contract.StepSnapshot {
	return contract.StepSnapshot{
		ID: s.def.ID, Tool: s.def.Tool, State: s.state, Reason: s.reason, Needs: s.def.Needs, Since: s.since,
		Attempts: s.attempts, Undos: s.undos, Result: s.result, Proof: s.proof,
		Unverified: s.unverified, Accepted: s.accepted, Evidence: s.evidence,
	}
}

// reductions are the ways to make steps smaller, those that lose least first: arguments and evidence are in the history
// as well.
func reductions(each func(change func(*contract.StepSnapshot))) []func() {
	evidence := func(most int) func() {
		return func() {
			each(func(s *contract.StepSnapshot) { s.Evidence = s.Evidence[max(0, len(s.Evidence)-most):] })
		}
	}
	return []func(){
		evidence(4),
		func() { each(func(s *contract.StepSnapshot) { s.Args = s.Args.Slim(nil, 0) }) },
		evidence(1),
		func() { each(func(s *contract.StepSnapshot) { s.Result = s.Result.Slim(nil, 0) }) },
		evidence(0),
		func() { each(func(s *contract.StepSnapshot) { s.Reason = cut(s.Reason, 80) }) },
	}
}

// receipt is what remains of the transaction.
func (t *transaction) receipt() *contract.Receipt {
	receipt := &contract.Receipt{Format: contract.ReceiptFormat, Snapshot: t.snapshot()}
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
	reason := t.reason
	if reason == "" {
		reason = t.state.Meaning()
	}
	fmt.Fprintf(&b, "**%s** · %s\n\n", t.state, markdown(reason))
	if w := t.waiting(); w != "" {
		fmt.Fprintf(&b, "Waiting for %s\n\n", w)
	}
	if t.undo != nil && !t.state.Closed() {
		t.describeUndo(&b)
	}
	b.WriteString("| step | tool | state | attempts | why |\n|---|---|---|---|---|\n")
	rows := 0
	for _, s := range t.steps {
		if len(t.steps) > detailRows && (s.state == contract.StepPending || s.state == contract.StepCommitted) {
			continue
		}
		row := fmt.Sprintf("| %s | %s | %s | %d | %s |\n",
			markdown(s.def.ID), markdown(s.def.Tool), s.state, s.attempts, markdown(cut(s.reason, 200)))
		if rows == detailRows || b.Len()+len(row) > detailsLimit {
			break
		}
		rows++
		b.WriteString(row)
	}
	if left := len(t.steps) - rows; left > 0 {
		fmt.Fprintf(&b, "\nand %d more steps\n", left)
	}
	return b.String()
}

// describeUndo shows the undo plan in short: what is undone in which wave, and what stays.
func (t *transaction) describeUndo(b *strings.Builder) {
	fmt.Fprintf(b, "Undo plan %d, digest `%.*s`\n\n", t.undo.Version, shortDigest, t.undo.Digest)
	left := 0
	line := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); b.Len()+len(text) <= detailsLimit/2 {
			b.WriteString(text)
		} else {
			left++
		}
	}
	for i, wave := range t.undo.Waves {
		for _, undo := range wave {
			line("- wave %d: %s undoes %s (seen %s)\n", i+1, markdown(undo.Tool), markdown(undo.Step), undo.Seen)
		}
	}
	for _, kept := range t.undo.Kept {
		line("- stays: %s: %s\n", markdown(kept.Step), markdown(cut(kept.Why, 200)))
	}
	if left > 0 {
		fmt.Fprintf(b, "- and %d more\n", left)
	}
	b.WriteString("\n")
}

// markdownEscape makes text that comes from elsewhere harmless inside a Markdown table.
var markdownEscape = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", "[", `\[`, "`", "'", "*", `\*`)

func markdown(s string) string { return markdownEscape.Replace(s) }

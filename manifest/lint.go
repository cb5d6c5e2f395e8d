package manifest

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/expr"
)

// Warning says where a manifest cannot be made safe, or probably means something else than it says. A manifest with
// warnings works.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Place is the field that the warning is about.
	Place string `json:"place"`
	Rule  Rule   `json:"rule"`
	Text  string `json:"text"`
}

// String is the warning in one line.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s [%s]", w.File, w.Line, w.Column, w.Place, w.Text, w.Rule)
}

// Rule names a rule of the lint.
type Rule string

// The rules.
const (
	// RuleNoContract: a plan uses a tool that has no contract.
	RuleNoContract Rule = "no-contract"
	// RuleNoInspector: a critical tool has no inspector.
	RuleNoInspector Rule = "no-inspector"
	// RuleNoCompensator: a mutating tool has no compensator.
	RuleNoCompensator Rule = "no-compensator"
	// RuleUnverifiable: a compensator whose effect no inspector can verify.
	RuleUnverifiable Rule = "unverifiable-compensator"
	// RuleNotOurs: the inspector cannot tell our effect from another's.
	RuleNotOurs Rule = "not-ours"
	// RuleOursByLook: only a look before the call tells our effect from another's.
	RuleOursByLook Rule = "ours-by-look"
	// RuleNoPresent and RuleNoAbsent: the inspector cannot prove presence, or absence.
	RuleNoPresent Rule = "no-present"
	RuleNoAbsent  Rule = "no-absent"
	// RuleAnyError: any error answer counts as absence.
	RuleAnyError Rule = "any-error"
	// RuleSameCondition: one condition says both that the effect is there and that it is not.
	RuleSameCondition Rule = "same-condition"
	// RuleShortTimeout: a timeout that is over before a call is sent.
	RuleShortTimeout Rule = "short-timeout"
	// RuleNeedsResult: the inspector cannot be asked after a lost reply.
	RuleNeedsResult Rule = "inspect-needs-result"
	// RuleOrder: a step that cannot be undone may run before one that can.
	RuleOrder Rule = "order"
	// RuleTxNotPassed: the inspector looks for tx.id, which the step does not pass.
	RuleTxNotPassed Rule = "tx-not-passed"
	// RuleTxFilter: the inspector looks only among what carries tx.id.
	RuleTxFilter Rule = "tx-filter"
	// RuleUndoDeadline: undo may be impossible before its approval expires.
	RuleUndoDeadline Rule = "undo-deadline"
	// RuleRecoveredResult: what a recovered step hands over lacks what is referred to.
	RuleRecoveredResult Rule = "recovered-result"
	// RuleWholeResult: a whole result is passed on, and kept however large it is.
	RuleWholeResult Rule = "whole-result"
	// RuleNotSealed: declared secrets are visible in the history.
	RuleNotSealed Rule = "not-sealed"
	// RuleRetries: retries without an inspector never happen.
	RuleRetries Rule = "retries"
	// RuleOptionalInput and RuleUnknownInput: a reference to the input may lead to nothing.
	RuleOptionalInput Rule = "optional-input"
	RuleUnknownInput  Rule = "unknown-input"
	// RuleUnsigned: quorum or four eyes without approver keys.
	RuleUnsigned Rule = "unsigned-approvals"
	// RuleUnknownField: a field of an AgentX manifest has no effect.
	RuleUnknownField Rule = "unknown-field"
	// RuleNoPlanFiles: a pattern of planFiles matches no file.
	RuleNoPlanFiles Rule = "no-plan-files"
)

// lint adds its warnings to the manifest's and to the plans' own.
func (b *builder) lint() {
	byTool := map[string][]Warning{}
	for _, m := range b.doc.tools {
		t := b.m.Tools[m.name]
		from := len(b.warnings)
		b.lintTool(t, b.tools[m.name])
		byTool[m.name] = b.warnings[from:len(b.warnings):len(b.warnings)]
	}
	for _, p := range b.m.Plans {
		from := len(b.warnings)
		b.lintPlan(p)
		p.Warnings = slices.Clone(b.warnings[from:])
		for _, w := range b.warnings[:from] {
			if w.File == p.File && within(w.Place, p.place.field) {
				p.Warnings = append(p.Warnings, w)
			}
		}
		for _, ref := range sortedTools(p.Definition) {
			for _, w := range byTool[ref] {
				if w.Rule != RuleNotSealed || passesSensitive(p.Definition, ref) {
					p.Warnings = append(p.Warnings, w)
				}
			}
		}
		for _, w := range p.Warnings {
			p.Definition.Warnings = append(p.Definition.Warnings, w.Place+": "+w.Text)
		}
	}
}

// passesSensitive tells whether a step of the plan passes an argument that its contract declares sensitive.
func passesSensitive(d contract.Definition, ref string) bool {
	return slices.ContainsFunc(d.Steps, func(s contract.Step) bool {
		return s.Tool == ref && slices.ContainsFunc(d.Tools[ref].Sensitive, func(path string) bool {
			elems, err := contract.ParseElems(path)
			return err == nil && hands(s.Args, elems)
		})
	})
}

// within tells whether a field is inside another.
func within(field, outer string) bool {
	return outer == "" || field == outer || strings.HasPrefix(field, outer+".") || strings.HasPrefix(field, outer+"[")
}

func sortedTools(d contract.Definition) []string {
	var refs []string
	for ref := range d.Tools {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}

// mutates tells whether a call of the tool may change something.
func mutates(t contract.Tool) bool { return t.Risk != contract.RiskReadOnly }

func (b *builder) lintTool(t contract.Tool, at *toolPlace) {
	o := object{problems: b.problems, node: at.node, field: at.field}
	warn := func(name string, rule Rule, format string, args ...any) {
		field, where := at.field, at.place
		if n := o.get(name); n != nil {
			field, where = o.in(name), n.place
		}
		b.warn(where, field, rule, format, args...)
	}
	if len(t.Sensitive) > 0 {
		warn("sensitive", RuleNotSealed, "declared secrets are not sealed yet: they are visible in the history of Temporal to whoever may read it")
	}
	lintTimeouts(t, warn)
	if !mutates(t) {
		return
	}
	if t.Risk == contract.RiskCritical && t.Inspect == nil {
		warn("", RuleNoInspector, "a critical tool without inspector: after a lost reply the step is UNKNOWN until a human resolves it")
		if n := o.get("retries"); n != nil && n.place != at.node.place && t.Retries > 0 {
			warn("retries", RuleRetries, "retries follow a proof of absence, and without an inspector there is none: they never happen")
		}
	}
	switch {
	case t.Compensate == nil && t.Risk == contract.RiskCritical:
		warn("", RuleNoCompensator, "no compensator: the effect cannot be undone, and stays when a transaction is rolled back")
	case t.Compensate != nil && t.Inspect == nil:
		warn("compensate", RuleUnverifiable, "a compensator without an inspector cannot be verified: the step counts as NOT_COMPENSABLE")
	}
	if t.Inspect != nil {
		b.lintInspector(t, warn)
	}
}

// leastTimeout is less than most calls take until they are sent: a worker has to fetch them first.
const leastTimeout = contract.Duration(10 * time.Millisecond)

func lintTimeouts(t contract.Tool, warn func(name string, rule Rule, format string, args ...any)) {
	for _, at := range []struct {
		name, call string
		timeout    contract.Duration
	}{
		{"timeout", "a call", t.Timeout},
		{"inspect", "a look", timeoutOf(t.Inspect)},
		{"compensate", "a compensation", timeoutOfUndo(t)},
	} {
		if at.timeout > 0 && at.timeout < leastTimeout {
			warn(at.name, RuleShortTimeout, "%s with a timeout of %v can hardly ever be sent: allow some seconds", at.call, at.timeout)
		}
	}
}

func timeoutOf(in *contract.Inspect) contract.Duration {
	if in == nil {
		return 0
	}
	return in.Timeout
}

// timeoutOfUndo is the timeout of the compensator, if it has one of its own.
func timeoutOfUndo(t contract.Tool) contract.Duration {
	if t.Compensate == nil || t.Compensate.Timeout == t.Timeout {
		return 0
	}
	return t.Compensate.Timeout
}

// sameCondition tells whether two conditions are the same but for white space.
func sameCondition(a, b string) bool { return squeezed(a) == squeezed(b) }

// squeezed is a condition without the white space that is in no text of it.
func squeezed(condition string) string {
	var b strings.Builder
	var quote rune
	escaped := false
	for _, r := range condition {
		switch {
		case escaped:
			escaped = false
		case quote != 0 && r == '\\':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && unicode.IsSpace(r):
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (b *builder) lintInspector(t contract.Tool, warn func(name string, rule Rule, format string, args ...any)) {
	in := t.Inspect
	proves := func(p contract.Proof) bool { return slices.Contains(in.Proves, p) }
	switch {
	case in.Present == "":
		warn("inspect", RuleNoPresent, "no condition present: what is there is never recognised, and a step in doubt never becomes RECOVERED")
	case proves(contract.ProofTx), t.OursByKey:
	case in.Before:
		warn("inspect", RuleOursByLook, "only the look before the call tells our effect from another's: somebody else may create it at the same moment; compare something with tx.id if the owner can keep it")
	default:
		warn("inspect", RuleNotOurs, "present does not tell our effect from another's: after a lost reply the step is UNKNOWN; compare something with tx.id, or declare before: true, or ours: key")
	}
	if in.Absent == "" {
		warn("inspect", RuleNoAbsent, "no condition absent: absence is never proven, so nothing is tried again, and no rollback is ever verified")
	} else if c, err := expr.Cached(expr.Absent, in.Absent); err == nil && anyError(c.Mentions()) {
		warn("inspect", RuleAnyError, "absent does not look at error.code or at the response: a timeout or a refused login would count as absence, too")
	}
	if in.Present != "" && sameCondition(in.Present, in.Absent) {
		warn("inspect", RuleSameCondition, "present and absent are the same condition: where it is true nothing is proven, and the inspector can never tell")
	}
	refs, err := in.Args.Refs()
	if err == nil && slices.ContainsFunc(refs, func(r contract.Ref) bool { return r.Path.Root == "tx" }) {
		warn("inspect", RuleTxFilter, "the inspector looks only among what carries tx.id: a call that does not pass tx.id to the owner, such as a single call through the proxy, would not be found, and that counts as absence; look up by the arguments of the call")
	}
	if err == nil && slices.ContainsFunc(refs, func(r contract.Ref) bool { return r.Path.Root == "result" }) {
		warn("inspect", RuleNeedsResult, "the inspector's arguments need the result of the call, which a lost reply takes along: it cannot be asked then; look up by the arguments of the call")
	}
	if t.Compensate == nil || len(in.Result) == 0 {
		return
	}
	undo, err := t.Compensate.Args.Refs()
	if err != nil {
		return
	}
	for _, ref := range undo {
		if ref.Path.Root == "result" && !hands(in.Result, ref.Path.Elems) {
			warn("inspect", RuleRecoveredResult, "compensate refers to ${%s}, which inspect.result does not hand over: a recovered step could not be undone", ref.Path)
		}
	}
}

// anyError tells of a condition that looks at the error as a whole, or at its text only, and not at the response.
func anyError(mentions []contract.Path) bool {
	whole := false
	for _, p := range mentions {
		switch {
		case p.Root == "response", p.Root == "error" && len(p.Elems) > 0:
			return false
		case p.Root == "error":
			whole = true
		}
	}
	return whole
}

// hands tells whether a template of a result can have a value at a path: it has, or leaves the place to a reference.
func hands(t contract.Template, path []contract.Elem) bool {
	for i := range path {
		value, err := contract.Lookup([]byte(t), path[:i])
		if err != nil {
			return false
		}
		if len(value) > 0 && value[0] == '"' {
			return true // a reference, which stands for any value
		}
	}
	_, err := contract.Lookup([]byte(t), path)
	return err == nil
}

func (b *builder) lintPlan(p *Plan) {
	d := p.Definition
	g := graph{needs: map[string][]string{}}
	for _, s := range d.Steps {
		g.ids = append(g.ids, s.ID)
		g.needs[s.ID] = s.Needs
	}
	steps := map[string]contract.Step{}
	for _, s := range d.Steps {
		steps[s.ID] = s
	}
	for _, s := range d.Steps {
		at, t := p.place.steps[s.ID], d.Tools[s.Tool]
		b.lintOrder(p, g, s)
		if t.Inspect != nil && slices.Contains(t.Inspect.Proves, contract.ProofTx) && mutates(t) && !passesTx(at.refs) {
			b.warn(at.place, at.field, RuleTxNotPassed,
				"the inspector of %s looks for tx.id, and the step passes it in no argument: unless the owner keeps it from _meta, what is there is never recognised as ours", s.Tool)
		}
		if c := t.Compensate; c != nil && c.Within > 0 && c.Within < d.Approval.Expires {
			b.warn(at.place, at.field, RuleUndoDeadline,
				"%s can be undone for %v, and an approval may take %v: the rollback may be approved when it is no longer possible",
				s.Tool, short(c.Within), short(d.Approval.Expires))
		}
		for _, ref := range at.refs {
			if ref.Root != "steps" {
				continue
			}
			path := ref.Elems[2:]
			of := d.Tools[steps[ref.Elems[0].Member].Tool]
			if len(path) == 0 {
				b.warn(ref.node.place, ref.field, RuleWholeResult,
					"${%s} passes a whole result on, which is then kept in the history however large it is; refer to the members that are needed", ref)
			} else if of.Inspect != nil && len(of.Inspect.Result) > 0 && !hands(of.Inspect.Result, path) {
				b.warn(ref.node.place, ref.field, RuleRecoveredResult,
					"${%s}: inspect.result of %s does not hand it over: the plan stops here when that step had to be recovered", ref, of.Ref())
			}
		}
	}
}

// short writes a duration as people do: 72h and not 72h0m0s.
func short(d contract.Duration) string {
	text := strings.TrimSuffix(d.String(), "m0s")
	if text != d.String() {
		text += "m"
	}
	if hours, found := strings.CutSuffix(text, "h0m"); found {
		text = hours + "h"
	}
	return text
}

func passesTx(refs []templateRef) bool {
	return slices.ContainsFunc(refs, func(r templateRef) bool {
		return r.Root == "tx" && len(r.Elems) > 0 && r.Elems[0].Member == "id"
	})
}

// lintOrder warns of a step that cannot be undone and does not wait for every step that can: if that one fails, the
// effect of this one stays.
func (b *builder) lintOrder(p *Plan, g graph, s contract.Step) {
	d := p.Definition
	t := d.Tools[s.Tool]
	if !mutates(t) || t.Compensable() {
		return
	}
	before := g.before(s.ID)
	var others []string
	for _, other := range d.Steps {
		if o := d.Tools[other.Tool]; other.ID != s.ID && !before[other.ID] && mutates(o) && o.Compensable() {
			others = append(others, other.ID)
		}
	}
	if len(others) == 0 {
		return
	}
	at := p.place.steps[s.ID]
	b.warn(at.place, at.field, RuleOrder,
		"%s cannot be undone, and may run before %s: if that fails, it stays; let it need them, and come last", s.ID, strings.Join(others, ", "))
}

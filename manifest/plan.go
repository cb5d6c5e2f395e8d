package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// wantName describes contract.IsName, for plans and steps: they stand in paths and in workflow IDs.
var wantName = fmt.Sprintf("begin with a letter or _, and use letters, digits, _ and -, at most %d bytes", contract.MaxName)

// Plan is a plan of a manifest, resolved against its contracts and servers.
type Plan struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the input; empty where the plan declares none.
	Schema json.RawMessage
	// Key holds the logical keys of the input; none for every member.
	Key []string
	// TTL is how long the same intent is answered with the same outcome.
	TTL contract.Duration
	// Definition is what a transaction of this plan pins. It is not to be changed.
	Definition contract.Definition
	// Warnings of the lint about this plan and the contracts that it uses.
	Warnings []Warning
	// File and Line tell where the plan stands.
	File string
	Line int

	input *schema
	place planPlace
}

// planPlace is where the parts of a plan stand, for the lint.
type planPlace struct {
	place
	field string
	steps map[string]*stepPlace
}

type stepPlace struct {
	place
	field string
	refs  []templateRef
}

// plan reads one plan and resolves it. It returns nil where the plan is not valid.
func (b *builder) plan(source planSource) *Plan {
	before := len(b.errors)
	o, ok := b.object(source.node, source.field, "name", "description", "input", "key", "ttl", "approval", "steps")
	if !ok {
		return nil
	}
	p := &Plan{
		Name: source.name, File: source.node.file, Line: source.node.line,
		place: planPlace{place: source.node.place, field: source.field, steps: map[string]*stepPlace{}},
	}
	b.planName(p, o)
	p.Description = o.text("description", "what the plan is for")
	p.TTL = o.duration("ttl", b.m.Defaults.TTL, maxTime)
	if n := o.get("input"); n != nil {
		p.input = b.schema(n, o.in("input"))
		p.Schema = n.json()
	}
	b.planKey(p, o)
	approval := b.approval(o)
	steps := b.steps(p, o)
	if len(b.errors) > before {
		return nil
	}
	b.define(p, steps, approval)
	if len(b.errors) > before {
		return nil
	}
	return p
}

func (b *builder) planName(p *Plan, o object) {
	named := p.Name
	if named == "" || o.has("name") {
		p.Name = o.required("name", "provision-workspace")
	}
	if named != "" && p.Name != named {
		o.wrong("name", "the plan stands under the name "+named)
	}
	at := o.node.place
	if n := o.get("name"); n != nil {
		at = n.place
	}
	if p.Name != "" && !contract.IsName(p.Name) {
		b.add(at, o.field, wantName, "%q cannot name a plan", p.Name)
	}
}

// planKey reads the logical keys of the input.
func (b *builder) planKey(p *Plan, o object) {
	p.Key, _ = b.key(o)
	n := o.get("key")
	if n == nil || n.kind != kindList || p.input == nil {
		return
	}
	for _, item := range n.items {
		elems, err := contract.ParseElems(item.text)
		if item.kind != kindText || err != nil {
			continue
		}
		if found := p.input.find(elems); found.known && !found.declared && found.closed {
			b.add(item.place, o.in("key"), nearest.Hint(found.member, found.names), "the input has no member %q", found.member)
		}
	}
}

func (b *builder) approval(parent object) contract.Approval {
	a := contract.Approval{Start: "auto", Quorum: defaultQuorum, Expires: defaultExpires}
	n := parent.get("approval")
	if n.isNull() {
		return a
	}
	o, ok := b.object(n, parent.in("approval"), "start", "quorum", "fourEyes", "expires")
	if !ok {
		return a
	}
	a.Start = o.choice("start", "auto", "auto", contract.ApprovalRequired)
	a.Quorum = o.count("quorum", defaultQuorum, 1, 100)
	a.FourEyes = o.flag("fourEyes")
	a.Expires = o.duration("expires", defaultExpires, maxTime)
	if a.Quorum > 1 || a.FourEyes {
		b.warn(n.place, o.field, RuleUnsigned, "quorum and fourEyes count names, and nothing proves whose they are: signatures are not checked yet")
	}
	if approvers := len(b.doc.approvers); approvers > 0 && a.Quorum > approvers {
		o.wrong("quorum", "the manifest has "+plural(approvers, "approver"))
	}
	return a
}

// planStep is a step as it stands in the file.
type planStep struct {
	contract.Step
	at *stepPlace
}

// steps reads the steps in the order in which they stand.
func (b *builder) steps(p *Plan, o object) []planStep {
	n := o.get("steps")
	if n == nil || n.kind != kindList || len(n.items) == 0 {
		at, field := o.node.place, o.field
		if n != nil {
			at, field = n.place, o.in("steps")
		}
		b.add(at, field, "such as steps: [{id: database, tool: database/create_database, args: {…}}]", "a plan has at least one step")
		return nil
	}
	var steps []planStep
	ids := stepIDs(n)
	for i, item := range n.items {
		field := indexed(o.in("steps"), i)
		if id := item.get("id"); id != nil && contract.IsName(id.text) && ids[id.text] == 1 {
			field = joined(o.in("steps"), id.text)
		}
		so, ok := b.object(item, field, "id", "tool", "args", "needs", "notAfter")
		if !ok {
			continue
		}
		s := planStep{at: &stepPlace{place: item.place, field: field}}
		s.ID = so.required("id", "database")
		if s.ID != "" && !contract.IsName(s.ID) {
			so.add(so.get("id").place, so.in("id"), wantName, "%q cannot name a step", s.ID)
		}
		if ids[s.ID] > 1 && p.place.steps[s.ID] != nil {
			so.add(so.get("id").place, so.in("id"), "", "the id %q stands twice, first in line %d", s.ID, p.place.steps[s.ID].line)
		}
		if ref := so.required("tool", "routing/create_route"); ref != "" {
			if server, tool, ok := b.toolRef(so.get("tool").place, so.in("tool"), ref, ""); ok {
				s.Tool = server + "/" + tool
				b.unlistedInPlan(so, s.Tool)
			}
		}
		s.Args, s.at.refs = b.args(so, "args", rootsOfArgs)
		s.NotAfter = so.duration("notAfter", 0, maxTime)
		s.Needs = b.needs(so, s, ids)
		b.inputRefs(p, s)
		if p.place.steps[s.ID] == nil {
			p.place.steps[s.ID] = s.at
		}
		steps = append(steps, s)
	}
	return steps
}

// unlistedInPlan warns of a tool without a contract, unless its name is nearly that of one that has one.
func (b *builder) unlistedInPlan(o object, ref string) {
	if b.tools[ref] != nil {
		return
	}
	server, tool, _ := strings.Cut(ref, "/")
	var listed []string
	for known := range b.tools {
		if rest, same := strings.CutPrefix(known, server+"/"); same {
			listed = append(listed, rest)
		}
	}
	slices.Sort(listed)
	hint := nearest.Hint(tool, listed)
	if hint != "" {
		hint = "; " + hint
	}
	b.warn(o.get("tool").place, o.in("tool"), RuleNoContract,
		"%s has no contract: a lost reply leaves the step UNKNOWN until a human resolves it, and nothing undoes it%s", ref, hint)
}

// stepIDs counts the ids of the steps.
func stepIDs(steps *node) map[string]int {
	ids := map[string]int{}
	for _, item := range steps.items {
		if id := item.get("id"); id != nil && id.kind == kindText {
			ids[id.text]++
		}
	}
	return ids
}

// needs collects the steps that a step waits for: those it names, and those its arguments refer to.
func (b *builder) needs(o object, s planStep, ids map[string]int) []string {
	var needs []string
	add := func(id string, at place, field, form string) {
		switch {
		case ids[id] == 0:
			known := slices.Sorted(maps.Keys(ids))
			want := nearest.Hint(id, known)
			if want == "" {
				want = "there are " + strings.Join(known, ", ")
			}
			b.add(at, field, want, "%sthere is no step %q", form, id)
		case id == s.ID:
			b.add(at, field, "", "%sthe step refers to itself", form)
		case !slices.Contains(needs, id):
			needs = append(needs, id)
		}
	}
	for _, n := range o.list("needs", "[database]") {
		add(n.text, n.place, o.in("needs"), "")
	}
	for _, ref := range s.at.refs {
		if ref.Root != "steps" {
			continue
		}
		form := "${" + ref.String() + "}: "
		if len(ref.Elems) == 0 || ref.Elems[0].IsItem {
			b.add(ref.node.place, ref.field, "such as ${steps.database.result.id}", "%ssay which step is meant", form)
			continue
		}
		if len(ref.Elems) < 2 || ref.Elems[1] != (contract.Elem{Member: "result"}) {
			b.add(ref.node.place, ref.field, "such as ${steps."+ref.Elems[0].Member+".result.id}",
				"%sof another step, only its result can be referred to", form)
			continue
		}
		add(ref.Elems[0].Member, ref.node.place, ref.field, form)
	}
	return needs
}

// inputRefs checks references to the input against its schema.
func (b *builder) inputRefs(p *Plan, s planStep) {
	for _, ref := range s.at.refs {
		if ref.Root != "input" || p.input == nil {
			continue
		}
		found := p.input.find(ref.Elems)
		switch {
		case !found.known || found.declared && !found.optional:
		case found.declared:
			b.warn(ref.node.place, ref.field, RuleOptionalInput,
				"${%s}: the input may lack %q; without it the step fails before it is dispatched: require it, or give it a default", ref, found.member)
		case found.closed:
			want := nearest.Hint(found.member, found.names)
			if want == "" && len(found.names) > 0 {
				want = "there are " + strings.Join(found.names, ", ")
			}
			b.add(ref.node.place, ref.field, want, "${%s}: the input has no member %q", ref, found.member)
		default:
			hint := nearest.Hint(found.member, found.names)
			if hint != "" {
				hint = " (" + hint + ")"
			}
			b.warn(ref.node.place, ref.field, RuleUnknownInput, "${%s}: the schema of the input does not mention %q%s", ref, found.member, hint)
		}
	}
}

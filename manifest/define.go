package manifest

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/expr"
)

// The largest plan and input that are accepted. Temporal keeps at most 2 MiB in one value, and both go into the history
// together, as one value with what is around them.
const (
	MaxDefinition = 1 << 20
	MaxInput      = 1 << 19
)

// define makes what a transaction of the plan pins: the steps in order, the contracts and servers that they use.
func (b *builder) define(p *Plan, steps []planStep, approval contract.Approval) {
	g := graphOf(steps)
	if way := g.cycle(); way != nil {
		at := p.place.steps[way[0]]
		b.add(at.place, at.field, "", "the steps wait for each other in a cycle: %s", arrows(way))
		return
	}
	byID := make(map[string]planStep, len(steps))
	for _, s := range steps {
		byID[s.ID] = s
	}
	d := contract.Definition{
		Plan: p.Name, Description: p.Description,
		Tools: map[string]contract.Tool{}, Servers: map[string]contract.ServerRef{},
		Approval: approval, TTL: p.TTL,
	}
	use := func(server string) {
		d.Servers[server] = b.m.Servers[server].Ref()
	}
	for _, id := range g.order() {
		s := byID[id]
		tool, _ := b.m.Tool(s.Tool)
		d.Tools[s.Tool] = tool
		use(tool.Server)
		if tool.Inspect != nil {
			use(tool.Inspect.Server)
		}
		if tool.Compensate != nil {
			use(tool.Compensate.Server)
		}
		s.Step.Keep = keeps(s, tool, steps)
		d.Steps = append(d.Steps, s.Step)
	}
	digest, err := canon.DigestValue(d)
	if err != nil {
		b.add(p.place.place, p.place.field, "", "the plan has no digest: %v", err)
		return
	}
	d.Digest = digest
	text, err := json.Marshal(d)
	if err != nil {
		b.add(p.place.place, p.place.field, "", "the plan cannot be written as JSON: %v", err)
		return
	}
	if len(text) > MaxDefinition {
		b.add(p.place.place, p.place.field, "split it into several plans, or shorten its arguments",
			"the plan has %d bytes with its contracts, at most %d are allowed", len(text), MaxDefinition)
	}
	p.Definition = d
}

// keeps lists the paths in a step's result that something refers to: later steps, the step's own inspector with its
// conditions, and its compensator. A path inside another one is left out; the empty path is the whole result.
func keeps(s planStep, tool contract.Tool, steps []planStep) []string {
	paths := map[string][]contract.Elem{}
	keep := func(elems []contract.Elem) { paths[contract.ElemsString(elems)] = elems }
	for _, other := range steps {
		for _, ref := range other.at.refs {
			if ref.Root == "steps" && len(ref.Elems) > 1 && ref.Elems[0].Member == s.ID {
				keep(ref.Elems[2:])
			}
		}
	}
	for _, elems := range resultRefs(tool) {
		keep(elems)
	}
	var out []string
	for _, text := range slices.Sorted(maps.Keys(paths)) {
		covered := false
		for i := range paths[text] {
			if _, outer := paths[contract.ElemsString(paths[text][:i])]; outer {
				covered = true
			}
		}
		if !covered {
			out = append(out, text)
		}
	}
	return out
}

// resultRefs are the paths of a step's own result that its contract refers to.
func resultRefs(tool contract.Tool) [][]contract.Elem {
	var found [][]contract.Elem
	template := func(t contract.Template) {
		refs, err := t.Refs()
		if err != nil {
			return // it was read before
		}
		for _, ref := range refs {
			if ref.Path.Root == "result" {
				found = append(found, ref.Path.Elems)
			}
		}
	}
	if in := tool.Inspect; in != nil {
		template(in.Args)
		for kind, source := range map[expr.Kind]string{expr.Present: in.Present, expr.Absent: in.Absent} {
			c, err := expr.Cached(kind, source)
			if err != nil {
				continue // there is none
			}
			for _, p := range c.Mentions() {
				if p.Root == "result" && len(p.Elems) > 0 { // result alone is compared with null
					found = append(found, p.Elems)
				}
			}
		}
	}
	if tool.Compensate != nil {
		template(tool.Compensate.Args)
	}
	return found
}

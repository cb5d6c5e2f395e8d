package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// The rules of Check.
const (
	// RuleUnknownTool: the server has no tool of that name.
	RuleUnknownTool Rule = "unknown-tool"
	// RuleUnknownArgument, RuleMissingArgument and RuleWrongArgument: the tool's input schema does not accept the call.
	RuleUnknownArgument Rule = "unknown-argument"
	RuleMissingArgument Rule = "missing-argument"
	RuleWrongArgument   Rule = "wrong-argument"
	// RuleToolSchema: the input schema that the server gives for the tool cannot be used.
	RuleToolSchema Rule = "tool-schema"
)

// Check compares the manifest with what a server says of itself: tools holds the input schema of each tool that the
// server has. It finds tools that the server does not have, and arguments that their schemas do not accept, as far as
// that can be known before templates are filled.
func (m *Manifest) Check(server string, tools map[string]json.RawMessage) []Warning {
	c := checker{problems: &problems{}, server: server, tools: tools, schemas: map[string]*schema{}}
	for _, ref := range slices.Sorted(maps.Keys(m.Tools)) {
		t, at := m.Tools[ref], m.places[ref]
		if t.Server == server {
			c.call(at.place, at.field, t.Name, nil, false)
		}
		if in := t.Inspect; in != nil && in.Server == server {
			c.call(at.node.get("inspect").place, at.field+".inspect", in.Tool, in.Args, true)
		}
		if undo := t.Compensate; undo != nil && undo.Server == server {
			c.call(at.node.get("compensate").place, at.field+".compensate", undo.Tool, undo.Args, true)
		}
	}
	for _, p := range m.Plans {
		for _, s := range p.Definition.Steps {
			if of, name, _ := strings.Cut(s.Tool, "/"); of == server {
				at := p.place.steps[s.ID]
				c.call(at.place, at.field, name, s.Args, true)
			}
		}
	}
	return c.warnings
}

type checker struct {
	*problems
	server  string
	tools   map[string]json.RawMessage
	schemas map[string]*schema
}

// call checks the name of a tool and, where withArgs is set, the arguments of a call of it.
func (c *checker) call(at place, field, tool string, args contract.Template, withArgs bool) {
	raw, known := c.tools[tool]
	if !known {
		hint := nearest.Hint(tool, slices.Sorted(maps.Keys(c.tools)))
		if hint != "" {
			hint = " (" + hint + ")"
		}
		c.warn(at, field, RuleUnknownTool, "the server %s has no tool %q%s", c.server, tool, hint)
		return
	}
	if !withArgs || len(raw) == 0 {
		return
	}
	s, compiled := c.schemas[tool]
	if !compiled {
		var err error
		if s, err = compileSchema(raw); err != nil {
			_, message := schemaProblem(err)
			c.warn(at, field, RuleToolSchema, "the input schema of %s cannot be used: %s", tool, message)
		}
		c.schemas[tool] = s
	}
	if s == nil {
		return
	}
	if len(args) == 0 {
		args = contract.Template("{}")
	}
	value, err := canon.Decode(args)
	members, ok := value.(map[string]any)
	if err != nil || !ok {
		return // one ${path} for all arguments
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		found := s.find([]contract.Elem{{Member: name}})
		switch {
		case found.known && !found.declared && found.closed:
			hint := nearest.Hint(name, found.names)
			if hint == "" {
				hint = "there are " + strings.Join(found.names, ", ")
			}
			c.warn(at, joined(field+".args", name), RuleUnknownArgument, "%s takes no argument %q (%s)", tool, name, hint)
		case found.known && found.declared && isLiteral(members[name]):
			if err := s.root.Properties[name].Validate(members[name]); err != nil {
				c.warn(at, joined(field+".args", name), RuleWrongArgument, "%s does not take it: %s", tool, strings.Join(inputTexts(err, nil), "; "))
			}
		}
	}
	for _, name := range missing(s.root, members) {
		c.warn(at, field+".args", RuleMissingArgument, "%s requires the argument %q", tool, name)
	}
}

// missing lists the members that a schema requires and that are not there.
func missing(sch *jsonschema.Schema, members map[string]any) []string {
	var out []string
	for _, name := range sch.Required {
		if _, ok := members[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// isLiteral tells whether a value of a template has no references in it.
func isLiteral(v any) bool {
	switch v := v.(type) {
	case string:
		return !strings.Contains(v, "${")
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isLiteral(item) })
	case map[string]any:
		for _, member := range v {
			if !isLiteral(member) {
				return false
			}
		}
	}
	return true
}

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// schema is a compiled JSON Schema (draft 2020-12 unless it says otherwise) of an object.
type schema struct {
	root *jsonschema.Schema
	// fills tells whether there are defaults to fill in.
	fills bool
}

const schemaURL = "mcpx:input"

// noLoader refuses every reference out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema cannot refer to other files or to the network: put the definition under $defs", url)
}

// schema compiles the schema of a plan's input.
func (b *builder) schema(n *node, field string) *schema {
	if n.kind != kindObject {
		b.add(n.place, field, "such as {type: object, required: [workspace], properties: {workspace: {type: string}}}",
			"is %s, not a JSON Schema", n.describe())
		return nil
	}
	s, err := compileSchema(n.json())
	if err != nil {
		tokens, message := schemaProblem(err)
		at, atField := n.at(tokens, field)
		b.add(at.place, atField, "", "no valid JSON Schema: %s", message)
		return nil
	}
	if types := s.root.Types; types != nil && !types.IsEmpty() && !slices.Contains(types.ToStrings(), "object") {
		b.add(n.get("type").place, joined(field, "type"), "write type: object", "the input of a plan is always an object")
		return nil
	}
	before := len(b.errors)
	s.checkDefaults(func(sch *jsonschema.Schema, err error) {
		_, fragment, _ := strings.Cut(sch.Location, "#")
		at, atField := n.at(pointerTokens(fragment), field)
		if d := at.get("default"); d != nil {
			at, atField = d, joined(atField, "default")
		}
		b.add(at.place, atField, "", "the default does not satisfy its own schema: %s", strings.Join(inputTexts(err, nil), "; "))
	})
	if len(b.errors) > before {
		return nil
	}
	return s
}

func compileSchema(text json.RawMessage) (*schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	s := &schema{root: root}
	s.walk(func(sch *jsonschema.Schema) { s.fills = s.fills || sch.Default != nil })
	return s, nil
}

// schemaProblem is the place (JSON Pointer tokens in the schema) and the text of what does not compile.
func schemaProblem(err error) (tokens []string, message string) {
	var invalid *jsonschema.SchemaValidationError
	var validation *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &validation) {
		leaf := validation
		for len(leaf.Causes) > 0 {
			leaf = leaf.Causes[0]
		}
		return leaf.InstanceLocation, strings.Join(leafTexts(leaf, nil), "; ")
	}
	var pattern *jsonschema.InvalidRegexError
	if errors.As(err, &pattern) {
		_, fragment, _ := strings.Cut(pattern.URL, "#")
		return pointerTokens(fragment), fmt.Sprintf("%q is no regular expression that is supported (RE2)", pattern.Regex)
	}
	message = strings.ReplaceAll(err.Error(), schemaURL, "")
	return nil, message
}

// pointerTokens splits the fragment of a JSON Pointer.
func pointerTokens(fragment string) []string {
	if fragment == "" || fragment[0] != '/' {
		return nil
	}
	tokens := strings.Split(fragment[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens
}

// walk visits the schema and everything that defaults are filled in from, each once.
func (s *schema) walk(visit func(*jsonschema.Schema)) {
	seen := map[*jsonschema.Schema]bool{}
	var walk func(sch *jsonschema.Schema)
	walk = func(sch *jsonschema.Schema) {
		if sch == nil || seen[sch] {
			return
		}
		seen[sch] = true
		visit(sch)
		walk(sch.Ref)
		for _, inner := range sch.AllOf {
			walk(inner)
		}
		for _, name := range slices.Sorted(maps.Keys(sch.Properties)) {
			walk(sch.Properties[name])
		}
		walk(sch.Items2020)
		for _, inner := range sch.PrefixItems {
			walk(inner)
		}
		if items, ok := sch.Items.(*jsonschema.Schema); ok {
			walk(items)
		}
	}
	walk(s.root)
}

func (s *schema) checkDefaults(fail func(*jsonschema.Schema, error)) {
	s.walk(func(sch *jsonschema.Schema) {
		if sch.Default == nil {
			return
		}
		if err := sch.Validate(*sch.Default); err != nil {
			fail(sch, err)
		}
	})
}

// fill puts defaults where members are missing. What was filled in is not filled further: a default is written whole.
// The value is changed in place.
func (s *schema) fill(v any) (changed bool) {
	if !s.fills {
		return false
	}
	return fillIn(s.root, v, 0)
}

func fillIn(sch *jsonschema.Schema, v any, depth int) (changed bool) {
	if sch == nil || depth > maxDepth {
		return false
	}
	changed = fillIn(sch.Ref, v, depth+1)
	for _, inner := range sch.AllOf {
		changed = fillIn(inner, v, depth+1) || changed
	}
	switch v := v.(type) {
	case map[string]any:
		for name, property := range sch.Properties {
			if member, found := v[name]; found {
				changed = fillIn(property, member, depth+1) || changed
			}
		}
		for name, property := range sch.Properties {
			if _, found := v[name]; !found {
				if d := defaultOf(property); d != nil {
					v[name], changed = cloned(*d), true
				}
			}
		}
	case []any:
		for i, item := range v {
			inner := sch.Items2020
			if i < len(sch.PrefixItems) {
				inner = sch.PrefixItems[i]
			} else if items, ok := sch.Items.(*jsonschema.Schema); ok {
				inner = items
			}
			changed = fillIn(inner, item, depth+1) || changed
		}
	}
	return changed
}

// cloned copies decoded JSON, so that what is filled in is never the schema's own.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[name] = cloned(member)
		}
		return members
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = cloned(item)
		}
		return items
	}
	return v
}

func defaultOf(sch *jsonschema.Schema) *any {
	for range maxDepth {
		if sch == nil || sch.Default != nil {
			break
		}
		sch = sch.Ref
	}
	if sch == nil {
		return nil
	}
	return sch.Default
}

// found is what a schema says of a path.
type found struct {
	// known: the schema tells whether there is such a member. declared: there is.
	known, declared bool
	// closed: there is certainly no other than those declared.
	closed bool
	// optional: it may be missing, and has no default.
	optional bool
	// member is the last one that was looked for, or the optional one; names are those beside it.
	member string
	names  []string
}

// find looks a path up in the schema.
func (s *schema) find(elems []contract.Elem) found {
	at := found{known: true, declared: true}
	sch := s.root
	for _, e := range elems {
		for range maxDepth {
			if sch == nil || sch.Ref == nil || len(sch.Properties) > 0 {
				break
			}
			sch = sch.Ref
		}
		if sch == nil || sch.Bool != nil {
			return found{}
		}
		if e.IsItem {
			switch items, single := sch.Items.(*jsonschema.Schema); {
			case e.Index < len(sch.PrefixItems):
				sch = sch.PrefixItems[e.Index]
			case sch.Items2020 != nil:
				sch = sch.Items2020
			case single:
				sch = items
			default:
				return found{}
			}
			continue
		}
		composed := len(sch.AllOf)+len(sch.AnyOf)+len(sch.OneOf) > 0 || sch.If != nil || sch.Ref != nil ||
			sch.DynamicRef != nil || len(sch.DependentSchemas) > 0
		property, ok := sch.Properties[e.Member]
		if !ok {
			extra, isBool := sch.AdditionalProperties.(bool)
			closed := isBool && !extra && len(sch.PatternProperties) == 0
			open := sch.AdditionalProperties != nil && !closed || len(sch.Properties) == 0 && !closed
			if composed && !closed || open {
				return found{}
			}
			return found{known: true, closed: closed, member: e.Member, names: slices.Sorted(maps.Keys(sch.Properties))}
		}
		if !slices.Contains(sch.Required, e.Member) && !composed && defaultOf(property) == nil && !at.optional {
			at.optional, at.member = true, e.Member
		}
		sch = property
	}
	return at
}

// decodeInput reads an input strictly.
func decodeInput(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	v, err := canon.Decode(raw)
	if err != nil {
		return nil, err
	}
	members, ok := v.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	return members, nil
}

var errNoObject = errors.New("it is not an object; pass a JSON object")

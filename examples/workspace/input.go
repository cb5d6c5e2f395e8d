package workspace

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxText is the longest text an argument may hold, in Unicode code points.
const maxText = 4096

// field is one named value of a resource, and of the arguments that set it: a
// text, or an exact 64-bit integer of at least 1.
type field struct {
	name     string
	integer  bool
	required bool
	nonEmpty bool
	doc      string
}

// input is the shape of a tool's arguments: the single source of both the
// published JSON Schema and the check in parse.
type input struct {
	fields []field
	// oneOf names the fields of which exactly one must be given, if any.
	oneOf []string
}

func (a App) createInput() input {
	return input{fields: slices.Concat([]field{nameField}, a.fields, []field{ownerField})}
}

func (a App) getInput() input {
	ids := a.idFields()
	byName := field{name: "name", nonEmpty: true, doc: "Name to look for. Where several have it, the newest is returned."}
	owner := field{name: "owner", nonEmpty: true, doc: "Look only at resources of this owner."}
	return input{fields: slices.Concat([]field{byName}, ids, []field{owner}), oneOf: names(byName, ids...)}
}

func (a App) deleteInput() input {
	ids := a.idFields()
	return input{fields: ids, oneOf: names(ids[0], ids[1:]...)}
}

func (a App) listInput() input {
	return input{fields: []field{{name: "owner", nonEmpty: true, doc: "List only resources of this owner."}}}
}

// idFields returns the names under which the identifier may be given.
func (a App) idFields() []field {
	ids := []field{{name: "id", nonEmpty: true, doc: fmt.Sprintf("Identifier of the %s, %s….", a.noun, a.prefix)}}
	if a.idAlias != "" {
		ids = append(ids, field{name: a.idAlias, nonEmpty: true, doc: "The identifier under its other name."})
	}
	return ids
}

func names(first field, rest ...field) []string {
	all := []string{first.name}
	for _, f := range rest {
		all = append(all, f.name)
	}
	return all
}

// values are checked arguments: string or int64 by field name. Absent optional
// fields are absent.
type values map[string]any

func (v values) text(name string) string {
	s, _ := v[name].(string)
	return s
}

// id returns the identifier, whichever of its names was used.
func (v values) id(a App) string {
	if id := v.text("id"); id != "" {
		return id
	}
	return v.text(a.idAlias)
}

// parse checks raw arguments against the shape. It is strict: member names are
// compared exactly, unknown and duplicate members, null, and numbers that are
// not exact 64-bit integers are errors.
func (in input) parse(raw []byte) (values, error) {
	var members map[string]jsontext.Value
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, fmt.Errorf("arguments must be one JSON object without duplicate members: %w", err)
		}
	}
	for name := range members {
		if !slices.ContainsFunc(in.fields, func(f field) bool { return f.name == name }) {
			return nil, fmt.Errorf("%s: unknown argument, the tool takes %s", name, strings.Join(in.names(), ", "))
		}
	}
	out := make(values, len(members))
	for _, f := range in.fields {
		value, given := members[f.name]
		if !given {
			if f.required {
				return nil, fmt.Errorf("%s: required argument is missing", f.name)
			}
			continue
		}
		parsed, err := f.parse(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		out[f.name] = parsed
	}
	if len(in.oneOf) == 0 {
		return out, nil
	}
	given := 0
	for _, name := range in.oneOf {
		if _, ok := out[name]; ok {
			given++
		}
	}
	if given != 1 {
		return nil, fmt.Errorf("give exactly one of %s, not %d of them", strings.Join(in.oneOf, ", "), given)
	}
	return out, nil
}

func (in input) names() []string { return names(in.fields[0], in.fields[1:]...) }

func (f field) parse(value jsontext.Value) (any, error) {
	if f.integer {
		return parseInteger(value)
	}
	if value.Kind() != '"' {
		return nil, errors.New("must be a string")
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, err
	}
	if f.nonEmpty && text == "" {
		return nil, errors.New("must not be empty")
	}
	if n := utf8.RuneCountInString(text); n > maxText {
		return nil, fmt.Errorf("has %d characters, at most %d are allowed", n, maxText)
	}
	return text, nil
}

// parseInteger accepts every spelling of an integer that JSON Schema does
// (10, 10.0, 1e1), exactly.
func parseInteger(value jsontext.Value) (int64, error) {
	if value.Kind() != '0' {
		return 0, errors.New("must be an integer")
	}
	text := string(value)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		rat, ok := new(big.Rat).SetString(text)
		if !ok || !rat.IsInt() || !rat.Num().IsInt64() {
			return 0, fmt.Errorf("must be an integer from 1 to 9223372036854775807, got %.40s", text)
		}
		n = rat.Num().Int64()
	}
	if n < 1 {
		return 0, fmt.Errorf("must be at least 1, got %d", n)
	}
	return n, nil
}

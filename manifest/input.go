package manifest

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	said "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// InputError says why an input is not accepted. It unwraps to ErrInput, and holds no value of the input.
type InputError struct {
	Plan     string
	Problems []string
}

// Error names every problem with the JSON Pointer of its place.
func (e *InputError) Error() string {
	return fmt.Sprintf("the input of plan %q is not accepted: %s", e.Plan, strings.Join(e.Problems, "; "))
}

// Unwrap returns ErrInput.
func (e *InputError) Unwrap() error { return ErrInput }

// inputTexts says in words what a validation error means. s, if given, knows the names beside an unknown member.
func inputTexts(err error, s *schema) []string {
	var validation *jsonschema.ValidationError
	if !errors.As(err, &validation) {
		return []string{err.Error()}
	}
	return slices.Compact(leafTexts(validation, s))
}

const maxInputTexts = 20

func leafTexts(e *jsonschema.ValidationError, s *schema) []string {
	switch e.ErrorKind.(type) {
	case *said.AnyOf, *said.OneOf, *said.Not, *said.Contains, *said.MinContains, *said.MaxContains:
	default:
		if len(e.Causes) > 0 {
			var texts []string
			for _, inner := range e.Causes {
				if texts = append(texts, leafTexts(inner, s)...); len(texts) > maxInputTexts {
					return texts[:maxInputTexts]
				}
			}
			return texts
		}
	}
	at := pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *said.Required:
		var texts []string
		for _, name := range k.Missing {
			texts = append(texts, pointer(append(slices.Clone(e.InstanceLocation), name))+" is missing, and the schema requires it")
		}
		return texts
	case *said.AdditionalProperties:
		var texts []string
		for _, name := range k.Properties {
			text := pointer(append(slices.Clone(e.InstanceLocation), name)) + " is not in the schema"
			if hint := hintFor(s, e.InstanceLocation, name); hint != "" {
				text += " (" + hint + ")"
			}
			texts = append(texts, text)
		}
		return texts
	}
	if len(e.InstanceLocation) == 0 {
		at = "it"
	}
	return []string{at + " " + says(e.ErrorKind)}
}

func hintFor(s *schema, location []string, name string) string {
	if s == nil {
		return ""
	}
	elems := make([]contract.Elem, 0, len(location)+1)
	for _, token := range location {
		elems = append(elems, contract.Elem{Member: token})
	}
	names := s.find(append(elems, contract.Elem{Member: name})).names
	if hint := nearest.Hint(name, names); hint != "" || len(names) == 0 {
		return hint
	}
	return "there are " + strings.Join(names, ", ")
}

// says is what is wrong with a value, and what the schema says of it, without the value.
func says(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *said.Type:
		return fmt.Sprintf("is of type %s; the schema says %s", k.Got, strings.Join(k.Want, " or "))
	case *said.Enum:
		return "is none of the values that the schema lists: " + jsonText(k.Want)
	case *said.Const:
		return "is not the one value that the schema allows: " + jsonText(k.Want)
	case *said.Format:
		if k.Want == "regex" {
			return "is no regular expression that is supported (RE2)"
		}
		return "is not in the format " + k.Want
	case *said.Pattern:
		return "does not match the pattern " + k.Want
	case *said.MinLength:
		return fmt.Sprintf("is too short: the schema wants at least %s", plural(k.Want, "character"))
	case *said.MaxLength:
		return fmt.Sprintf("is too long: the schema allows at most %s", plural(k.Want, "character"))
	case *said.MinItems:
		return fmt.Sprintf("has too few items: the schema wants at least %d", k.Want)
	case *said.MaxItems:
		return fmt.Sprintf("has too many items: the schema allows at most %d", k.Want)
	case *said.UniqueItems:
		return fmt.Sprintf("has equal items at %d and %d; the schema wants each once", k.Duplicates[0], k.Duplicates[1])
	case *said.AdditionalItems:
		return "has more items than the schema allows"
	case *said.Contains, *said.MinContains, *said.MaxContains:
		return "does not contain the items that the schema wants"
	case *said.MinProperties:
		return fmt.Sprintf("has too few members: the schema wants at least %d", k.Want)
	case *said.MaxProperties:
		return fmt.Sprintf("has too many members: the schema allows at most %d", k.Want)
	case *said.PropertyNames:
		return fmt.Sprintf("has a member with a name that the schema does not allow: %q", clip(k.Property, 100))
	case *said.DependentRequired:
		return fmt.Sprintf("has %s, so the schema wants %s, too", k.Prop, strings.Join(k.Missing, ", "))
	case *said.Dependency:
		return fmt.Sprintf("has %s, so the schema wants %s, too", k.Prop, strings.Join(k.Missing, ", "))
	case *said.Minimum:
		return "is too small: the schema says at least " + decimal(k.Want)
	case *said.Maximum:
		return "is too large: the schema says at most " + decimal(k.Want)
	case *said.ExclusiveMinimum:
		return "is too small: the schema says more than " + decimal(k.Want)
	case *said.ExclusiveMaximum:
		return "is too large: the schema says less than " + decimal(k.Want)
	case *said.MultipleOf:
		return "is not a multiple of " + decimal(k.Want)
	case *said.FalseSchema:
		return "is not allowed by the schema"
	case *said.AnyOf:
		return "satisfies none of the alternatives of the schema"
	case *said.OneOf:
		if len(k.Subschemas) > 0 {
			return "satisfies more than one alternative of the schema, and exactly one is wanted"
		}
		return "satisfies none of the alternatives of the schema"
	case *said.Not:
		return "is what the schema excludes"
	}
	return "does not satisfy the schema"
}

// jsonText writes a value of the schema for people.
func jsonText(v any) string {
	text, err := canon.Value(v)
	if err != nil {
		return "?"
	}
	return clip(string(text), 200)
}

// decimal writes an exact number, shortened to what people read.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if digits, exact := r.FloatPrec(); exact {
		return r.FloatString(digits)
	}
	return r.RatString()
}

// pointer is a JSON Pointer, "/" for the whole value.
func pointer(tokens []string) string {
	if len(tokens) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}

package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Template is a JSON value whose strings may hold ${path}. A string that is nothing but one ${path} becomes the value
// at that path, exactly: numbers keep every digit. Inside other text the value is formatted: text as it is, numbers
// and booleans by their JSON spelling, objects and arrays as compact JSON; null has no text. $${ stands for ${.
//
// Templates hold paths only, so that workflow code can fill them; conditions are CEL, and are evaluated in activities.
type Template json.RawMessage

// MarshalJSON writes the template as the JSON value that it is.
func (t Template) MarshalJSON() ([]byte, error) { return json.RawMessage(t).MarshalJSON() }

// UnmarshalJSON keeps the template's JSON.
func (t *Template) UnmarshalJSON(raw []byte) error {
	*t = append((*t)[:0], raw...)
	return nil
}

// Ref is one reference of a template.
type Ref struct {
	// At is the JSON Pointer of the string that holds it.
	At string
	// Path it refers to; Whole when the string is nothing else.
	Path  Path
	Whole bool
}

// Scope holds the values that a template may refer to, by root.
type Scope map[string]json.RawMessage

// Refs lists the template's references in the order in which they stand. The error names the string that cannot be
// read.
func (t Template) Refs() ([]Ref, error) {
	var refs []Ref
	_, err := t.walk(func(at string, parts []part) (json.RawMessage, error) {
		for _, p := range parts {
			if p.path != nil {
				refs = append(refs, Ref{At: at, Path: *p.path, Whole: len(parts) == 1})
			}
		}
		return json.RawMessage("null"), nil
	})
	return refs, err
}

// Fill replaces every reference by its value in scope. The error wraps ErrNoValue where a path leads to nothing, and
// names the template's place and the path.
func (t Template) Fill(scope Scope) (json.RawMessage, error) {
	return t.walk(func(at string, parts []part) (json.RawMessage, error) {
		var text strings.Builder
		for _, p := range parts {
			if p.path == nil {
				text.WriteString(p.text)
				continue
			}
			root, ok := scope[p.path.Root]
			if !ok {
				return nil, fmt.Errorf("%s: ${%s}: nothing is called %q here: %w", at, p.path, p.path.Root, ErrNoValue)
			}
			value, err := Lookup(root, p.path.Elems)
			if err != nil {
				return nil, fmt.Errorf("%s: ${%s}: %w", at, p.path, err)
			}
			if value = bytes.TrimSpace(value); len(value) == 0 {
				return nil, fmt.Errorf("%s: ${%s}: %w", at, p.path, ErrNoValue)
			}
			if len(parts) == 1 {
				return value, nil
			}
			if err := embed(&text, value); err != nil {
				return nil, fmt.Errorf("%s: ${%s}: %w", at, p.path, err)
			}
		}
		return encodeString(text.String()), nil
	})
}

// embed writes a value inside text.
func embed(text *strings.Builder, value json.RawMessage) error {
	switch value[0] {
	case 'n':
		return fmt.Errorf("null cannot stand inside text")
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return err
		}
		text.WriteString(s)
	case '{', '[':
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return err
		}
		text.Write(compact.Bytes())
	default:
		text.Write(value)
	}
	return nil
}

// part of a templated string: text, or a path.
type part struct {
	text string
	path *Path
}

// splitTemplate splits a string at its references.
func splitTemplate(s string) ([]part, error) {
	var parts []part
	var text strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			text.WriteString(s)
			break
		}
		if i > 0 && s[i-1] == '$' {
			text.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		text.WriteString(s[:i])
		end := closing(s[i:])
		if end < 0 {
			return nil, fmt.Errorf("%q: the ${ is not closed (write $${ for the characters themselves)", s[i:])
		}
		path, err := ParsePath(strings.TrimSpace(s[i+2 : i+end]))
		if err != nil {
			return nil, err
		}
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
		parts = append(parts, part{path: &path})
		s = s[i+end+1:]
	}
	if text.Len() > 0 || len(parts) == 0 {
		parts = append(parts, part{text: text.String()})
	}
	return parts, nil
}

// closing finds the } that ends a reference; one inside a quoted member does not count.
func closing(s string) int {
	quoted := false
	for i := 2; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if quoted {
				i++
			}
		case '"':
			quoted = !quoted
		case '}':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// walk rebuilds the template, replacing every string by what put makes of its parts. Members keep their order and
// everything that is not a string its spelling.
func (t Template) walk(put func(at string, parts []part) (json.RawMessage, error)) (json.RawMessage, error) {
	if len(bytes.TrimSpace(t)) == 0 {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid(t) {
		return nil, fmt.Errorf("template is no JSON value: %.40s", t)
	}
	var out bytes.Buffer
	if err := walkValue(&out, json.RawMessage(t), "", put); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func walkValue(out *bytes.Buffer, raw json.RawMessage, at string, put func(string, []part) (json.RawMessage, error)) error {
	raw = bytes.TrimSpace(raw)
	place := at
	if place == "" {
		place = "/"
	}
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		parts, err := splitTemplate(s)
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		value, err := put(place, parts)
		if err != nil {
			return err
		}
		out.Write(value)
	case '{', '[':
		dec := json.NewDecoder(bytes.NewReader(raw))
		if _, err := dec.Token(); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		object := raw[0] == '{'
		out.WriteByte(raw[0])
		for i := 0; dec.More(); i++ {
			if i > 0 {
				out.WriteByte(',')
			}
			inner := at + "/" + strconv.Itoa(i)
			if object {
				token, err := dec.Token()
				if err != nil {
					return fmt.Errorf("%s: %w", place, err)
				}
				name := token.(string)
				inner = at + "/" + pointerEscape.Replace(name)
				out.Write(encodeString(name))
				out.WriteByte(':')
			}
			var value json.RawMessage
			if err := dec.Decode(&value); err != nil {
				return fmt.Errorf("%s: %w", inner, err)
			}
			if err := walkValue(out, value, inner, put); err != nil {
				return err
			}
		}
		out.WriteByte(raw[0] + 2) // the closing bracket: '{'+2 is '}', '['+2 is ']'
	default:
		out.Write(raw)
	}
	return nil
}

// pointerEscape writes a member's name as RFC 6901 (JSON Pointer) does.
var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// encodeString writes s as a JSON string, leaving <, > and & as they are.
func encodeString(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrNoValue is wrapped by every error of a path that leads to nothing.
var ErrNoValue = errors.New("no such value")

// Path leads from a root ("input", "args", "result", "response", "tx", "step", "steps") to a value inside it:
// root.member, root[0], root["any member"].
type Path struct {
	Root  string
	Elems []Elem
}

// Elem is one step of a path: a member's name, or an index where Index is set.
type Elem struct {
	Member string
	Index  int
	IsItem bool
}

// ParsePath reads a path as people write it in a template. The error says at which character it went wrong.
func ParsePath(text string) (Path, error) {
	var p Path
	i := scanName(text)
	if i == 0 {
		return p, fmt.Errorf("path %q: must begin with a name such as input, args or steps", text)
	}
	p.Root = text[:i]
	elems, err := parseElems(text, i)
	p.Elems = elems
	return p, err
}

// ParseElems reads a path that has no root: member.member[0], as in the keys of a contract.
func ParseElems(text string) ([]Elem, error) {
	if text == "" {
		return nil, errors.New("path is empty")
	}
	if text[0] == '[' {
		return parseElems(text, 0)
	}
	return parseElems("."+text, 0)
}

func parseElems(text string, i int) ([]Elem, error) {
	var elems []Elem
	for i < len(text) {
		switch text[i] {
		case '.':
			n := scanName(text[i+1:])
			if n == 0 {
				return nil, fmt.Errorf(`path %q: a name must follow the dot at character %d (write ["…"] for other members)`, text, i+1)
			}
			elems = append(elems, Elem{Member: text[i+1 : i+1+n]})
			i += 1 + n
		case '[':
			end := strings.IndexByte(text[i:], ']')
			if end > 0 && i+1 < len(text) && text[i+1] == '"' {
				var name string
				dec := json.NewDecoder(strings.NewReader(text[i+1:]))
				if err := dec.Decode(&name); err != nil {
					return nil, fmt.Errorf("path %q: the quoted member at character %d: %w", text, i+1, err)
				}
				i += 1 + int(dec.InputOffset())
				if i >= len(text) || text[i] != ']' {
					return nil, fmt.Errorf("path %q: missing ] at character %d", text, i)
				}
				elems = append(elems, Elem{Member: name})
				i++
				continue
			}
			if end < 0 {
				return nil, fmt.Errorf("path %q: missing ] for the [ at character %d", text, i)
			}
			digits := text[i+1 : i+end]
			index, err := strconv.Atoi(digits)
			if err != nil || index < 0 || strconv.Itoa(index) != digits {
				return nil, fmt.Errorf(`path %q: %q at character %d is no index (write ["…"] for a member)`, text, digits, i+1)
			}
			elems = append(elems, Elem{Index: index, IsItem: true})
			i += end + 1
		default:
			return nil, fmt.Errorf("path %q: unexpected %q at character %d", text, text[i], i)
		}
	}
	return elems, nil
}

// scanName returns the length of the name that text begins with: letters of any script, digits, underscores and
// hyphens, the first one a letter or an underscore.
func scanName(text string) int {
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			return i
		case unicode.IsLetter(r), r == '_':
		case i > 0 && (unicode.IsMark(r) || unicode.IsNumber(r) || r == '-'):
		default:
			return i
		}
	}
	return len(text)
}

// MaxName is the greatest length, in bytes, of the name of a plan or a step: they stand in workflow IDs, which Temporal
// limits.
const MaxName = 100

// IsName tells whether s can name a plan or a step, and so stand in a path without quotes.
func IsName(s string) bool { return s != "" && len(s) <= MaxName && scanName(s) == len(s) }

// String writes the path as ParsePath reads it.
func (p Path) String() string { return p.Root + elemsString(p.Elems, true) }

// ElemsString writes a path without a root as ParseElems reads it.
func ElemsString(elems []Elem) string { return elemsString(elems, false) }

func elemsString(elems []Elem, rooted bool) string {
	var b strings.Builder
	for i, e := range elems {
		switch {
		case e.IsItem:
			fmt.Fprintf(&b, "[%d]", e.Index)
		case e.Member != "" && scanName(e.Member) == len(e.Member):
			if i > 0 || rooted {
				b.WriteByte('.')
			}
			b.WriteString(e.Member)
		default:
			quoted, _ := json.Marshal(e.Member)
			b.WriteString("[" + string(quoted) + "]")
		}
	}
	return b.String()
}

// Lookup follows elems into raw and returns the value there with its bytes as they are. The error wraps ErrNoValue and
// names the place where the path ended.
func Lookup(raw json.RawMessage, elems []Elem) (json.RawMessage, error) {
	for i, e := range elems {
		raw = bytes.TrimSpace(raw)
		here := func() string {
			if i == 0 {
				return "the value"
			}
			return ElemsString(elems[:i])
		}
		switch {
		case len(raw) == 0:
			return nil, fmt.Errorf("%s is missing: %w", here(), ErrNoValue)
		case e.IsItem:
			var items []json.RawMessage
			if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
				return nil, fmt.Errorf("%s is %s, not an array: %w", here(), kindOf(raw), ErrNoValue)
			}
			if e.Index >= len(items) {
				return nil, fmt.Errorf("%s has %d items, none at [%d]: %w", here(), len(items), e.Index, ErrNoValue)
			}
			raw = items[e.Index]
		default:
			var members map[string]json.RawMessage
			if raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
				return nil, fmt.Errorf("%s is %s, not an object: %w", here(), kindOf(raw), ErrNoValue)
			}
			value, ok := members[e.Member]
			if !ok {
				return nil, fmt.Errorf("%s has no member %q: %w", here(), e.Member, ErrNoValue)
			}
			raw = value
		}
	}
	return raw, nil
}

func kindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "missing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

package canon

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrMissingKey says that a declared logical key is not in the arguments. The error names every one that is missing.
	ErrMissingKey = errors.New("logical key missing")
	// ErrNotObject says that the arguments are a JSON value, but not an object.
	ErrNotObject = errors.New("arguments are not an object")
)

// Select picks the logical keys of a call out of its arguments and returns them as one canonical object, flat,
// each under the text of its key: the keys "order.id" and "items[0].sku" give
// {"items[0].sku":…,"order.id":…}. No keys (nil or empty) means all arguments. Absent arguments (no bytes at
// all) are {}.
//
// A key is first looked up as the exact name of a top-level argument. Only where there is none is it read as
// a path: names and array indexes separated by dots (order.id, items.0.id), indexes in brackets (items[0].id),
// and names that hold dots or brackets as JSON strings in brackets (labels["a.b"]).
//
// A key that leads nowhere is an error that wraps [ErrMissingKey]: a smaller set of keys would make different
// intents one. An argument that is null is there. Arguments that are no object are an [ErrNotObject], and
// malformed ones an [*Error].
func Select(args []byte, keys []string) ([]byte, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	v, err := Decode(args)
	if err != nil {
		return nil, err
	}
	members, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: they are %s; pass a JSON object", ErrNotObject, describe(v))
	}
	if len(keys) == 0 {
		return appendValue(make([]byte, 0, len(args)), members, new(place))
	}
	selected := make(map[string]any, len(keys))
	var missing []string
	for _, key := range keys {
		value, found := lookUp(members, key)
		if !found {
			missing = append(missing, strconv.Quote(shorten(key)))
			continue
		}
		selected[key] = value
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: the arguments have no %s; pass every declared key (null counts), or correct the contract's key list",
			ErrMissingKey, strings.Join(missing, ", no "))
	}
	return appendValue(nil, selected, new(place))
}

func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	default:
		return "an array"
	}
}

// lookUp finds a logical key in the arguments.
func lookUp(members map[string]any, key string) (any, bool) {
	if value, found := members[key]; found {
		return value, true
	}
	path, ok := parsePath(key)
	if !ok {
		return nil, false
	}
	var value any = members
	for _, step := range path {
		switch container := value.(type) {
		case map[string]any:
			if step.index != "" && step.name == "" {
				return nil, false
			}
			var found bool
			if value, found = container[step.name]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step.index)
			if err != nil || i >= len(container) {
				return nil, false
			}
			value = container[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// step is one element of a path: the name of a member, the index of an array element, or, for digits after a
// dot, either of them.
type step struct{ name, index string }

// parsePath reads a logical key as a path, and reports whether it is one.
func parsePath(key string) ([]step, bool) {
	var path []step
	for rest := key; rest != "" || path == nil; {
		bracket := strings.HasPrefix(rest, "[")
		if !bracket && path != nil {
			after, dot := strings.CutPrefix(rest, ".")
			if !dot {
				return nil, false
			}
			rest = after
		}
		var next step
		var ok bool
		switch {
		case bracket && strings.HasPrefix(rest, `["`):
			next.name, rest, ok = quotedName(rest[1:])
		case bracket:
			next.index, rest, ok = strings.Cut(rest[1:], "]")
			ok = ok && isIndex(next.index)
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			next.name, rest = rest[:end], rest[end:]
			ok = next.name != ""
			if isIndex(next.name) {
				next.index = next.name
			}
		}
		if !ok {
			return nil, false
		}
		path = append(path, next)
	}
	return path, true
}

// quotedName reads a JSON string and the closing bracket behind it.
func quotedName(text string) (name, rest string, ok bool) {
	for end := 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			v, err := Decode([]byte(text[:end+1]))
			rest, closed := strings.CutPrefix(text[end+1:], "]")
			if err != nil || !closed {
				return "", "", false
			}
			return v.(string), rest, true
		}
	}
	return "", "", false
}

// isIndex reports whether text is an array index: digits without leading zeros, at most nine of them.
func isIndex(text string) bool {
	digits, rest := leadingDigits(text)
	return digits != "" && rest == "" && len(digits) <= 9 && (digits == "0" || digits[0] != '0')
}

package canon

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Value returns the canonical form of a Go value:
//
//   - nil, bool, string, json.Number, the integer types, and map[string]any and []any of all these (a nil map
//     or slice is null, as in encoding/json);
//   - json.RawMessage, which is read as strictly as [JSON] reads (nil is null);
//   - float64 and float32 as the shortest decimal text that reads back as the same float, as encoding/json
//     and ECMAScript write it. NaN, the infinities, and magnitudes from 2^53 (float32: 2^24) are refused:
//     there a float may stand for an integer that was already rounded. Keep large numbers as json.Number;
//   - everything else as encoding/json writes it (without HTML escapes), with the same rules for the floats
//     and strings in it: invalid UTF-8, which encoding/json would silently replace, is refused.
//
// A bare []byte is refused, because it could be meant as JSON or as bytes: pass a json.RawMessage or a string.
// The value is not modified. Errors are of type [*Error].
func Value(v any) ([]byte, error) {
	return appendValue(nil, v, new(place))
}

func appendValue(dst []byte, v any, at *place) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v, at)
	case json.Number:
		return appendNumber(dst, string(v), at)
	case map[string]any:
		return appendObject(dst, v, at)
	case []any:
		return appendArray(dst, v, at)
	case json.RawMessage:
		if v == nil {
			return append(dst, "null"...), nil
		}
		return appendRaw(dst, v, at)
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint8:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint16:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint32:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), nil
	case float64:
		return appendFloat(dst, v, 64, at)
	case float32:
		return appendFloat(dst, float64(v), 32, at)
	case []byte:
		return nil, at.fail(-1, ErrUnsupported, "a []byte could be JSON or bytes; pass a json.RawMessage or a string")
	default:
		return appendTyped(dst, v, at)
	}
}

func appendString(dst []byte, s string, at *place) ([]byte, error) {
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return nil, at.fail(-1, ErrInvalidText, "a string that is not UTF-8; encode bytes as base64")
	}
	return dst, nil
}

func appendNumber(dst []byte, text string, at *place) ([]byte, error) {
	d, err := parseDecimal(text)
	if err != nil {
		return nil, at.fail(-1, ErrNumber, err.Error())
	}
	return d.appendTo(dst), nil
}

func appendFloat(dst []byte, f float64, bits int, at *place) ([]byte, error) {
	if reason := unsafeFloat(f, bits); reason != "" {
		return nil, at.fail(-1, ErrNumber, reason)
	}
	return appendNumber(dst, strconv.FormatFloat(f, 'e', -1, bits), at)
}

// unsafeFloat says why a float must not be written, or nothing.
func unsafeFloat(f float64, bits int) string {
	limit := float64(1 << 53)
	if bits == 32 {
		limit = 1 << 24
	}
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "JSON has no NaN and no infinity; leave the value out"
	case math.Abs(f) >= limit:
		return "a float of this size may stand for a rounded integer; keep the number as a json.Number"
	}
	return ""
}

func appendArray(dst []byte, items []any, at *place) ([]byte, error) {
	if items == nil {
		return append(dst, "null"...), nil
	}
	if at.depth >= MaxDepth {
		return nil, at.fail(-1, ErrTooDeep, tooDeep)
	}
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		here := at.element(i)
		var err error
		if dst, err = appendValue(dst, item, &here); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, members map[string]any, at *place) ([]byte, error) {
	if members == nil {
		return append(dst, "null"...), nil
	}
	if at.depth >= MaxDepth {
		return nil, at.fail(-1, ErrTooDeep, tooDeep)
	}
	// By bytes first: a fixed order to start from, so that even names that are refused sort the same way always.
	names := slices.Sorted(maps.Keys(members))
	slices.SortFunc(names, compareUTF16)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		here := at.member(name)
		var err error
		if dst, err = appendString(dst, name, &here); err != nil {
			return nil, err
		}
		dst = append(dst, ':')
		if dst, err = appendValue(dst, members[name], &here); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendRaw writes the canonical form of a JSON text that stands at a place in a larger value.
func appendRaw(dst, raw []byte, at *place) ([]byte, error) {
	v, err := decode(raw, at)
	if err != nil {
		return nil, err
	}
	return appendValue(dst, v, at)
}

// compareUTF16 orders strings by their UTF-16 code units. That is the order of their bytes, but for one
// thing: characters above U+FFFF are surrogates in UTF-16 and so come before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	for i > 0 && i < len(a) && i < len(b) && !(utf8.RuneStart(a[i]) && utf8.RuneStart(b[i])) {
		i--
	}
	if i == len(a) || i == len(b) {
		return len(a) - len(b)
	}
	x, _ := utf8.DecodeRuneInString(a[i:])
	y, _ := utf8.DecodeRuneInString(b[i:])
	if (x > 0xFFFF) != (y > 0xFFFF) {
		return int(firstUnit(x) - firstUnit(y))
	}
	if x != y {
		return int(x - y)
	}
	return slices.Compare([]byte(a[i:]), []byte(b[i:])) // only for invalid UTF-8, which is refused later
}

// firstUnit returns the first UTF-16 code unit of a character.
func firstUnit(r rune) rune {
	if r > 0xFFFF {
		return 0xD800 + (r-0x10000)>>10
	}
	return r
}

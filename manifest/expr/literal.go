package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// Literal writes a JSON value as a CEL expression that equals exactly this value.
func Literal(raw json.RawMessage) (string, error) {
	v, err := canon.Decode(raw)
	if err != nil {
		return "", fmt.Errorf("literal of a condition: %w", err)
	}
	var b strings.Builder
	if err := writeLiteral(&b, v); err != nil {
		return "", fmt.Errorf("literal of a condition: %w", err)
	}
	return b.String(), nil
}

func writeLiteral(b *strings.Builder, v any) error {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		b.WriteString(strconv.QuoteToASCII(v))
	case json.Number:
		return writeNumber(b, v.String())
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeLiteral(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.QuoteToASCII(name) + ": ")
			if err := writeLiteral(b, v[name]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	}
	return nil
}

func writeNumber(b *strings.Builder, text string) error {
	v, err := numberValue(text)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case types.Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		b.WriteString(strconv.FormatUint(uint64(v), 10) + "u")
	default:
		canonical, err := canon.JSON([]byte(text))
		if err != nil {
			return err
		}
		b.WriteString(`number("` + string(canonical) + `")`)
	}
	return nil
}

// Select writes the CEL expression for a member or item of a variable: response.order["line items"][0].
func Select(variable string, elems []contract.Elem) string {
	var b strings.Builder
	b.WriteString(variable)
	for _, e := range elems {
		switch {
		case e.IsItem:
			fmt.Fprintf(&b, "[%d]", e.Index)
		case isName(e.Member):
			b.WriteString("." + e.Member)
		default:
			b.WriteString("[" + strconv.QuoteToASCII(e.Member) + "]")
		}
	}
	return b.String()
}

// isName tells whether a member can be selected with a dot.
func isName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && !slices.Contains(reserved, name)
}

// reserved are the words of CEL that cannot be a name.
var reserved = strings.Fields("as break const continue else false for function if import in let loop namespace null package return true var void while")

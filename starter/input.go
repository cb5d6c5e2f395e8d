package starter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/canon"
)

// inputFlags are the flags by which people give the input of a plan.
type inputFlags struct {
	file  string
	pairs []string
}

func (f *inputFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "input", "", "`FILE` with the input as a JSON object; - for standard input")
	cmd.Flags().StringArrayVarP(&f.pairs, "set", "i", nil,
		"one member of the input, `KEY=VALUE`: JSON where it is of the type that the plan's schema wants, else text (repeatable; over --input)")
}

// read makes the input of the flags. The schema, which may be empty, decides what values mean; it is not enforced here.
func (f *inputFlags) read(stdin io.Reader, schema json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if f.file != "" {
		raw, err := readFile(stdin, f.file)
		if err != nil {
			return nil, usagef("input: %w", err)
		}
		if _, err := canon.JSON(raw); err != nil {
			return nil, usagef("input %s: %w", f.file, err)
		}
		if err := json.Unmarshal(raw, &members); err != nil || members == nil {
			return nil, usagef(`input %s: want one JSON object, such as {"workspace": "acme"}`, f.file)
		}
	}
	given := map[string]bool{}
	for _, pair := range f.pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("input %q: want key=value", pair)
		}
		if given[key] {
			return nil, usagef("input %q is given twice", key)
		}
		given[key] = true
		if !utf8.ValidString(pair) {
			return nil, usagef("input %q: its value is not UTF-8 text", key)
		}
		value, err := inputValue(text, wanted(schema, key))
		if err != nil {
			return nil, usagef("input %q: %w", key, err)
		}
		members[key] = value
	}
	return encode(members), nil
}

func readFile(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		if stdin == nil {
			return nil, errors.New("standard input is not there")
		}
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// wanted are the JSON types that a schema allows for a member of its object; none where it does not say.
func wanted(schema json.RawMessage, key string) []string {
	var object struct {
		Properties map[string]struct {
			Type  json.RawMessage   `json:"type"`
			Enum  []json.RawMessage `json:"enum"`
			Const json.RawMessage   `json:"const"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	property := object.Properties[key]
	var one string
	if json.Unmarshal(property.Type, &one) == nil && one != "" {
		return []string{one}
	}
	var types []string
	if json.Unmarshal(property.Type, &types) == nil && len(types) > 0 {
		return types
	}
	values := property.Enum
	if len(property.Const) > 0 {
		values = append(values, property.Const)
	}
	for _, value := range values {
		if kind := typeOf(value); !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	return types
}

// inputValue is what text means where values of the given types are wanted: the JSON value, digit by digit as it is
// written, where it is one of such a type, else the text itself. JSON of such a type with no exact meaning, as an object
// with the same member twice, is an error.
func inputValue(text string, types []string) (json.RawMessage, error) {
	raw := json.RawMessage(strings.TrimSpace(text))
	if !json.Valid(raw) {
		return encode(text), nil
	}
	kind := typeOf(raw)
	if len(types) > 0 && !slices.Contains(types, kind) && !(kind == "number" && slices.Contains(types, "integer")) {
		return encode(text), nil
	}
	if _, err := canon.JSON(raw); err != nil {
		return nil, fmt.Errorf("%w (to give it as text, write it as a JSON string)", err)
	}
	return raw, nil
}

// encode writes a value as JSON, with <, > and & as they are.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // text, and objects of values that were just read, always encode
	}
	return bytes.TrimSpace(b.Bytes())
}

// typeOf is the JSON Schema name of a value's type. Every number is a "number".
func typeOf(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return ""
	case raw[0] == '{':
		return "object"
	case raw[0] == '[':
		return "array"
	case raw[0] == '"':
		return "string"
	case raw[0] == 't', raw[0] == 'f':
		return "boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "number"
}

package manifest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestEveryRuleOfASchemaSaysWhatItWants(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"const":5}`, `6`, `is not the one value that the schema allows: 5`},
		{`{"minItems":2}`, `[1]`, `has too few items: the schema wants at least 2`},
		{`{"prefixItems":[{}],"items":false}`, `[1,2]`, `/v/1 is not allowed by the schema`},
		{`{"contains":{"const":1}}`, `[2]`, `does not contain the items that the schema wants`},
		{`{"minProperties":1}`, `{}`, `has too few members: the schema wants at least 1`},
		{`{"maxProperties":0}`, `{"a":1}`, `has too many members: the schema allows at most 0`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `is too long: the schema allows at most 1 character`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `has a, so the schema wants b, too`},
		{`{"maximum":0.25}`, `1`, `is too large: the schema says at most 0.25`},
		{`{"exclusiveMaximum":1}`, `1`, `is too large: the schema says less than 1`},
		{`{"multipleOf":0.1}`, `0.25`, `is not a multiple of 0.1`},
		{`false`, `1`, `is not allowed by the schema`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `satisfies none of the alternatives of the schema`},
		{`{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`, `satisfies more than one alternative of the schema, and exactly one is wanted`},
		{`{"not":{"type":"number"}}`, `1`, `is what the schema excludes`},
		{`{"format":"date-time"}`, `"today"`, `is not in the format date-time`},
	} {
		s, err := compileSchema(json.RawMessage(`{"properties":{"v":` + c.schema + `}}`))
		require.NoError(t, err, c.schema)
		members, err := decodeInput(json.RawMessage(`{"v":` + c.value + `}`))
		require.NoError(t, err)
		texts := inputTexts(s.root.Validate(members), s)
		require.NotEmpty(t, texts, c.schema)
		assert.Contains(t, texts[0], c.want, c.schema)
	}
}

func TestASchemaTellsOfAPathWhatItKnows(t *testing.T) {
	s, err := compileSchema(json.RawMessage(`{
		"required": ["a", "refs"],
		"properties": {
			"a": {"additionalProperties": false, "required": ["b"], "properties": {"b": {}, "c": {}, "d": {"default": 1}}},
			"open": {},
			"map": {"additionalProperties": {"type": "string"}},
			"list": {"items": {"properties": {"x": {}}}},
			"pair": {"prefixItems": [{"additionalProperties": false, "properties": {"y": {}}}]},
			"refs": {"$ref": "#/$defs/closed"},
			"any": {"anyOf": [{"properties": {"z": {}}}], "properties": {"w": {}}},
			"pattern": {"patternProperties": {"^x": {}}, "additionalProperties": false, "properties": {"q": {}}},
			"yes": true
		},
		"$defs": {"closed": {"additionalProperties": false, "required": ["k"], "properties": {"k": {}}}}
	}`))
	require.NoError(t, err)
	const (
		there    = "there"
		optional = "optional"
		missing  = "missing"
		unlikely = "unlikely"
		unknown  = "unknown"
	)
	for path, want := range map[string]string{
		"a": there, "a.b": there, "a.c": optional, "a.d": there, "a.e": missing, "b": unlikely,
		"open": optional, "open.x": unknown, "map.x": unknown, "list[0].x": optional, "list[0].y": unlikely,
		"pair[0].y": optional, "pair[0].z": missing, "pair[1]": unknown, "refs.k": there, "refs.l": missing,
		"any.w": optional, "any.z": unknown, "pattern.x1": unknown, "pattern.q": optional, "yes.x": unknown, "a[0]": unknown,
	} {
		elems, err := contract.ParseElems(path)
		require.NoError(t, err)
		found, got := s.find(elems), ""
		switch {
		case !found.known:
			got = unknown
		case found.declared && found.optional:
			got = optional
		case found.declared:
			got = there
		case found.closed:
			got = missing
		default:
			got = unlikely
		}
		assert.Equal(t, want, got, path)
	}
}

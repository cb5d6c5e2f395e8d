package canon_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/canon"
)

func TestLogicalKeysArePickedFlat(t *testing.T) {
	const args = `{"name":"x","n":1.0,"nil":null,"order":{"id":7,"0":"zero","":"blank"},"items":[{"id":"a"},{"id":"b","deep":[[1,2]]}],
		"labels":{"a.b":1,"c]\"[":2},"x.y":"literal","x":{"y":"path"},"a[":"odd","none":[]}`
	for _, tt := range []struct {
		name string
		keys []string
		want string
	}{
		{"top level", []string{"name"}, `{"name":"x"}`},
		{"sorted, whatever the order of keys", []string{"name", "n"}, `{"n":1,"name":"x"}`},
		{"the same key twice", []string{"n", "n"}, `{"n":1}`},
		{"null is there", []string{"nil"}, `{"nil":null}`},
		{"dotted", []string{"order.id"}, `{"order.id":7}`},
		{"whole object", []string{"order"}, `{"order":{"":"blank","0":"zero","id":7}}`},
		{"index in brackets", []string{"items[0].id", "items[1].deep[0][1]"}, `{"items[0].id":"a","items[1].deep[0][1]":2}`},
		{"index after a dot", []string{"items.1.id"}, `{"items.1.id":"b"}`},
		{"digits after a dot are a name in an object", []string{"order.0"}, `{"order.0":"zero"}`},
		{"quoted name", []string{`labels["a.b"]`, `labels["c]\"["]`, `order[""]`, `["order"].id`}, `{"[\"order\"].id":7,"labels[\"a.b\"]":1,"labels[\"c]\\\"[\"]":2,"order[\"\"]":"blank"}`},
		{"an exact name wins over a path", []string{"x.y"}, `{"x.y":"literal"}`},
		{"an exact name need not be a path", []string{"a["}, `{"a[":"odd"}`},
		{"the path behind an exact name", []string{`x["y"]`}, `{"x[\"y\"]":"path"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canon.Select([]byte(args), tt.keys)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
		})
	}
}

func TestNoKeysMeansAllArguments(t *testing.T) {
	for _, keys := range [][]string{nil, {}} {
		got, err := canon.Select([]byte(`{"b":1.0,"a":null}`), keys)
		require.NoError(t, err)
		assert.Equal(t, `{"a":null,"b":1}`, string(got))
		got, err = canon.Select(nil, keys)
		require.NoError(t, err)
		assert.Equal(t, `{}`, string(got), "absent arguments are an empty object")
	}
}

func TestMissingLogicalKeyIsAnErrorNotASmallerKey(t *testing.T) {
	const args = `{"name":"x","order":{"id":7},"items":[1],"s":"text","nil":null}`
	for _, key := range []string{
		"nam", "Name", "order.nr", "order[0]", "order.id.x", "items[1]", "items[-1]", "items[01]", "items[ 0]", "items.name", "items[0", "items[]",
		"items[99999999999999999999]", `items["0"]`, "s.0", "s[0]", "nil.x", "", ".", ".name", "name.", "order..id", "[0]", `["name"`, `["name]`, `["name\"]`,
		`["\ud800"]`, `order.["id"]`, "order.[0]", "order[id]", `order["id"]x`, "items[0]id",
	} {
		t.Run(key, func(t *testing.T) {
			got, err := canon.Select([]byte(args), []string{"name", key})
			assert.Nil(t, got)
			require.ErrorIs(t, err, canon.ErrMissingKey)
		})
	}
	_, err := canon.Select([]byte(args), []string{"name", "gone", "order.nr"})
	require.EqualError(t, err, `logical key missing: the arguments have no "gone", no "order.nr"; pass every declared key (null counts), or correct the contract's key list`)
	_, err = canon.Select(nil, []string{"name"})
	require.ErrorIs(t, err, canon.ErrMissingKey)
}

func TestArgumentsMustBeAStrictObject(t *testing.T) {
	for _, raw := range []string{`null`, `[]`, `"x"`, `1`, `true`} {
		_, err := canon.Select([]byte(raw), nil)
		require.ErrorIs(t, err, canon.ErrNotObject, raw)
	}
	_, err := canon.Select([]byte(`{"a":1,"b":{"c":1,"c":1}}`), []string{"a"})
	require.ErrorIs(t, err, canon.ErrDuplicateKey, "also beside the keys")
	_, err = canon.Select([]byte(` `), nil)
	require.ErrorIs(t, err, canon.ErrSyntax)
}

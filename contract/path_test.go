package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
)

func TestParsePath(t *testing.T) {
	member := func(name string) contract.Elem { return contract.Elem{Member: name} }
	item := func(i int) contract.Elem { return contract.Elem{Index: i, IsItem: true} }
	for text, want := range map[string]contract.Path{
		"input":                         {Root: "input"},
		"input.workspace":               {Root: "input", Elems: []contract.Elem{member("workspace")}},
		"steps.data-base.result.id":     {Root: "steps", Elems: []contract.Elem{member("data-base"), member("result"), member("id")}},
		"args.items[0].id":              {Root: "args", Elems: []contract.Elem{member("items"), item(0), member("id")}},
		"args[12][3]":                   {Root: "args", Elems: []contract.Elem{item(12), item(3)}},
		`args["any member"]["]"]["\""]`: {Root: "args", Elems: []contract.Elem{member("any member"), member("]"), member(`"`)}},
		`args[""].x`:                    {Root: "args", Elems: []contract.Elem{member(""), member("x")}},
		"args.größe":                    {Root: "args", Elems: []contract.Elem{member("größe")}},
		`args["0"]`:                     {Root: "args", Elems: []contract.Elem{member("0")}},
	} {
		path, err := contract.ParsePath(text)
		require.NoError(t, err, text)
		require.Equal(t, want, path, text)
	}
}

func TestParsePathErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "must begin with a name",
		".x":                         "must begin with a name",
		"1x":                         "must begin with a name",
		"args.":                      "character 5",
		"args..x":                    "character 5",
		"args x":                     `unexpected ' ' at character 4`,
		"args.x!":                    `unexpected '!' at character 6`,
		"args[":                      "missing ]",
		"args[x]":                    "is no index",
		"args[-1]":                   "is no index",
		"args[01]":                   "is no index",
		"args[ 1]":                   "is no index",
		"args[1":                     "missing ]",
		`args["x`:                    "missing ]",
		`args["x]`:                   "quoted member",
		`args["x"`:                   "missing ]",
		`args["x" ]`:                 "missing ]",
		`args["\q"]`:                 "quoted member",
		"args[99999999999999999999]": "is no index",
	} {
		_, err := contract.ParsePath(text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := contract.ParseElems("")
	require.ErrorContains(t, err, "empty")
}

// anyElem draws one step of a path, with members that need quotes among them.
func anyElem(t *rapid.T) contract.Elem {
	if rapid.Bool().Draw(t, "item") {
		return contract.Elem{Index: rapid.IntRange(0, 4).Draw(t, "index"), IsItem: true}
	}
	return contract.Elem{Member: rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_-]{0,4}`), rapid.String(), rapid.SampledFrom([]string{"", "]", `"`, "<&>", "a.b", "0"}),
	).Draw(t, "member")}
}

func TestPathsReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elems := rapid.SliceOfN(rapid.Custom(anyElem), 1, 5).Draw(t, "elems")
		path := contract.Path{Root: "steps", Elems: elems}
		again, err := contract.ParsePath(path.String())
		require.NoError(t, err, path.String())
		require.Equal(t, path, again, path.String())

		rootless, err := contract.ParseElems(contract.ElemsString(elems))
		require.NoError(t, err, contract.ElemsString(elems))
		require.Equal(t, elems, rootless)
	})
}

func TestLookupCopiesExactly(t *testing.T) {
	raw := json.RawMessage(`{"n":9007199254740993.10,"list":[1,{"id":"x"}],"null":null,"":{"":true},"text":"\u00e9","e":1E400}`)
	for path, want := range map[string]string{
		"n": "9007199254740993.10", "list[1].id": `"x"`, "list": `[1,{"id":"x"}]`, "null": "null",
		`[""][""]`: "true", "text": `"\u00e9"`, "e": "1E400",
	} {
		elems, err := contract.ParseElems(path)
		require.NoError(t, err)
		value, err := contract.Lookup(raw, elems)
		require.NoError(t, err, path)
		require.Equal(t, want, string(value), path)
	}
	value, err := contract.Lookup(raw, nil)
	require.NoError(t, err)
	require.Equal(t, raw, value)
}

func TestLookupErrorsSayWhereThePathEnds(t *testing.T) {
	raw := json.RawMessage(`{"list":[1],"text":"x","null":null,"yes":true}`)
	for path, want := range map[string]string{
		"nothing":   `the value has no member "nothing"`,
		"list[1]":   "list has 1 items, none at [1]",
		"list.x":    "list is an array, not an object",
		"text[0]":   "text is text, not an array",
		"null.x":    "null is null, not an object",
		"yes.x":     "yes is a boolean, not an object",
		"list[0].x": "list[0] is a number, not an object",
		"[0]":       "the value is an object, not an array",
	} {
		elems, err := contract.ParseElems(path)
		require.NoError(t, err)
		_, err = contract.Lookup(raw, elems)
		require.ErrorIs(t, err, contract.ErrNoValue, path)
		require.ErrorContains(t, err, want, path)
	}
	_, err := contract.Lookup(nil, []contract.Elem{{Member: "x"}})
	require.ErrorIs(t, err, contract.ErrNoValue)
}

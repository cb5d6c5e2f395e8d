package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
)

var scope = contract.Scope{
	"input": json.RawMessage(`{"n":18446744073709551617,"exact":1.10,"text":"a \"b\"","yes":true,"null":null,
		"list":[1, 2],"object":{"b":1,"a":"<&>"},"odd name":"odd","}":"brace","big":1e400}`),
	"tx": json.RawMessage(`{"id":"tx-1"}`),
}

func TestFill(t *testing.T) {
	for template, want := range map[string]string{
		``:                                 `{}`,
		`{"a":1.50,"b":[true,null,"x"]}`:   `{"a":1.50,"b":[true,null,"x"]}`,
		`{"a":"${input.n}"}`:               `{"a":18446744073709551617}`,
		`{"a":"${input.exact}"}`:           `{"a":1.10}`,
		`{"a":"${input.big}"}`:             `{"a":1e400}`,
		`{"a":"${input.null}"}`:            `{"a":null}`,
		`{"a":"${input.object}"}`:          `{"a":{"b":1,"a":"<&>"}}`,
		`{"a":"${ input.text }"}`:          `{"a":"a \"b\""}`,
		`{"a":["${tx.id}",{"b":"${tx}"}]}`: `{"a":["tx-1",{"b":{"id":"tx-1"}}]}`,
		`"${input.list}"`:                  `[1, 2]`,
		`{"a":"n=${input.n}, ${input.exact} ${input.yes}"}`: `{"a":"n=18446744073709551617, 1.10 true"}`,
		`{"a":"${input.text}!"}`:                            `{"a":"a \"b\"!"}`,
		`{"a":"${input.list} ${input.object}"}`:             `{"a":"[1,2] {\"b\":1,\"a\":\"<&>\"}"}`,
		`{"a":"${input[\"odd name\"]}${input[\"}\"]}"}`:     `{"a":"oddbrace"}`,
		`{"a":"$${input.n} costs $5, $$"}`:                  `{"a":"${input.n} costs $5, $$"}`,
		`{"a":"$${x}${tx.id}$${"}`:                          `{"a":"${x}tx-1${"}`,
		`{"${tx.id}":"<&>"}`:                                `{"${tx.id}":"<&>"}`,
		` { "b" : "x" , "a" : [ ] } `:                       `{"b":"x","a":[]}`,
		`7`:                                                 `7`,
	} {
		filled, err := contract.Template(template).Fill(scope)
		require.NoError(t, err, template)
		require.Equal(t, want, string(filled), template)
	}
}

func TestFillErrorsNameThePlace(t *testing.T) {
	for template, want := range map[string][2]string{
		`{"a":"${input.nothing}"}`:           {"/a", `has no member "nothing"`},
		`{"a":[1,"${nothing.x}"]}`:           {"/a/1", `nothing is called "nothing" here`},
		`{"a/b":{"c~d":"${input.n.x}"}}`:     {"/a~1b/c~0d", "is a number, not an object"},
		`{"a":"null inside: ${input.null}"}`: {"/a", "null cannot stand inside text"},
		`{"a":"${input"}`:                    {"/a", "not closed"},
		`{"a":"${}"}`:                        {"/a", "must begin with a name"},
		`{"a":"${input.n + 1}"}`:             {"/a", "unexpected ' '"},
		`{"a":`:                              {"no JSON value", ""},
		`{"a":1} 2`:                          {"no JSON value", ""},
	} {
		_, err := contract.Template(template).Fill(scope)
		require.ErrorContains(t, err, want[0], template)
		require.ErrorContains(t, err, want[1], template)
	}
	_, err := contract.Template(`"${input.nothing}"`).Fill(scope)
	require.ErrorIs(t, err, contract.ErrNoValue)
	_, err = contract.Template(`"${empty}"`).Fill(contract.Scope{"empty": nil})
	require.ErrorIs(t, err, contract.ErrNoValue)
}

func TestRefs(t *testing.T) {
	refs, err := contract.Template(`{"a":"${input.n}","b":["x ${steps.one.result.id} $${no} ${tx.id}"],"c":"plain"}`).Refs()
	require.NoError(t, err)
	var found []string
	for _, ref := range refs {
		line := ref.At + " " + ref.Path.String()
		if ref.Whole {
			line += " whole"
		}
		found = append(found, line)
	}
	require.Equal(t, []string{"/a input.n whole", "/b/0 steps.one.result.id", "/b/0 tx.id"}, found)

	_, err = contract.Template(`{"a":"${"}`).Refs()
	require.Error(t, err)
	refs, err = contract.Template(nil).Refs()
	require.NoError(t, err)
	require.Empty(t, refs)
}

// Whatever JSON a template is made of, without references it stays as it is.
func TestATemplateWithoutReferencesIsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyJSON(t, 3)
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		escaped := strings.ReplaceAll(string(raw), "${", "$${")
		filled, err := contract.Template(escaped).Fill(nil)
		require.NoError(t, err, escaped)
		var again any
		require.NoError(t, json.Unmarshal(filled, &again))
		require.Equal(t, value, again)
	})
}

func anyJSON(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"$", "$$", "${", "$${", "}", "${a}"})).Draw(t, "text")
	case 1:
		return float64(rapid.Int32().Draw(t, "number"))
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return nil
	case 4:
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, anyJSON(t, depth-1))
		}
		return items
	}
	members := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		members[rapid.StringMatching(`[a-z<"~/]{0,3}`).Draw(t, "name")] = anyJSON(t, depth-1)
	}
	return members
}

func TestATemplateIsWrittenAsItIs(t *testing.T) {
	step := contract.Step{ID: "a", Tool: "s/t", Args: contract.Template(`{"n":"${input.n}","x":1.50}`)}
	raw, err := json.Marshal(step)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"args":{"n":"${input.n}","x":1.50}`)
	var again contract.Step
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, step, again)
}

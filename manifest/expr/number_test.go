package expr

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

func TestNumbersAreComparedByValueAndExactly(t *testing.T) {
	for _, c := range []struct {
		response, source string
		want             bool
	}{
		{`1.0`, `response == 1`, true},
		{`1`, `response == 1.0`, true},
		{`10e-1`, `response == 1u`, true},
		{`-0`, `response == 0`, true},
		{`9007199254740993`, `response == 9007199254740993`, true},
		{`9007199254740993`, `response == 9007199254740992`, false},
		{`18446744073709551615`, `response == 18446744073709551615u`, true},
		{`18446744073709551616`, `response == 18446744073709551615u`, false},
		{`18446744073709551616`, `response == number("18446744073709551616")`, true},
		{`18446744073709551616`, `response == number("1.8446744073709551616e19")`, true},
		{`18446744073709551616`, `response != number("18446744073709551617")`, true},
		{`18446744073709551616`, `string(response) == "18446744073709551616"`, true},
		{`18446744073709551616`, `response > 5 && response > 5u && response > 5.5 && response >= number("18446744073709551616")`, true},
		{`18446744073709551616`, `response in [1, number("18446744073709551616")]`, true},
		{`18446744073709551616`, `type(response) == int`, false},
		{`18446744073709552000`, `response == 18446744073709551615u`, false},
		{`-9223372036854776000`, `response == -9223372036854775808`, false},
		{`-9223372036854775808`, `response == -9223372036854775808`, true},
		{`0.1`, `response == 0.1`, true},
		{`1e-1`, `response == .1`, true},
		{`0.1`, `response == 00.10`, true},
		{`-0.5`, `response == -0.5`, true},
		{`0.1000000000000000000001`, `response == 0.1`, false},
		{`0.1000000000000000000001`, `response > 0.1`, true},
		{`1e300`, `response == 1e300`, true},
		{`1e400`, `response == number("1e400")`, true},
		{`1e400`, `response > 1e300`, true},
		{`5`, `response == "5"`, false},
		{`"5"`, `response == 5`, false},
	} {
		condition, err := Compile(Present, c.source)
		require.NoError(t, err, c.source)
		truth, _ := condition.Eval(Vars{Response: json.RawMessage(c.response)})
		assert.Equal(t, c.want, truth, "%s with %s", c.source, c.response)
	}
	for source, problem := range map[string]string{
		`int(response) == 1`:      "a value is null or of another type than the condition expects",
		`5 < response`:            "a value is null or of another type than the condition expects",
		`response < "x"`:          "a value is null or of another type than the condition expects",
		`response + 1 == 2`:       "a value is null or of another type than the condition expects",
		`number("many") == 1`:     "number(…): the text is no JSON number",
		`number("\"1\"") == 1`:    "number(…): the text is no JSON number",
		`number(args.a.b) == 1`:   "there is no member a",
		`number(response) == 1`:   "a value is null or of another type than the condition expects",
		`response == 1 || true.b`: "",
	} {
		condition, err := Compile(Present, source)
		if problem == "" {
			require.Error(t, err, source)
			continue
		}
		require.NoError(t, err, source)
		_, got := condition.Eval(Vars{Response: json.RawMessage("18446744073709551616")})
		assert.Equal(t, problem, got, source)
	}
}

// numbers draws numbers near the borders of the types that CEL knows.
func numbers() *rapid.Generator[string] {
	edges := []string{
		"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615",
		"18446744073709551616", "18446744073709552000", "-9223372036854775808", "-9223372036854775809", "-9223372036854776000",
		"9223372036854776000", "0", "-0", "0.1", "0.10000000000000001", "1e300", "1e400", "5e-324", "1e-400",
		strconv.FormatFloat(math.MaxFloat64, 'g', -1, 64), "36893488147419103232", "4503599627370496.5",
	}
	return rapid.OneOf(
		rapid.SampledFrom(edges),
		rapid.Map(rapid.Int64(), func(i int64) string { return strconv.FormatInt(i, 10) }),
		rapid.Map(rapid.Float64(), func(f float64) string { return strconv.FormatFloat(f, 'e', -1, 64) }),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("%d.%de%d", rapid.IntRange(-9, 9).Draw(t, "whole"), rapid.IntRange(0, 99).Draw(t, "fraction"),
				rapid.IntRange(-25, 25).Draw(t, "exponent"))
		}),
	)
}

func TestTwoNumbersAreEqualExactlyIfTheirCanonicalFormsAre(t *testing.T) {
	equal, err := Compile(Present, "response == args.n")
	require.NoError(t, err)
	unequal, err := Compile(Present, "response != args.n")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		same, err := canon.Equal([]byte(a), []byte(b))
		require.NoError(t, err)
		vars := Vars{Response: json.RawMessage(a), Args: json.RawMessage(`{"n":` + b + `}`)}
		truth, problem := equal.Eval(vars)
		assert.Equal(t, same, truth, "%s == %s %s", a, b, problem)
		assert.Equal(t, !same, unequal.True(vars), "%s != %s", a, b)
	})
}

func TestALiteralEqualsItsValueAndNoOther(t *testing.T) {
	var values *rapid.Generator[string]
	scalar := rapid.OneOf(numbers(), rapid.SampledFrom([]string{"null", "true", "false", `""`, `"é\"\\\n\u007f😀"`}),
		rapid.Map(rapid.String(), func(s string) string {
			raw, err := json.Marshal(s)
			require.NoError(t, err)
			return string(raw)
		}))
	values = rapid.OneOf(scalar, rapid.Map(scalar, func(s string) string { return `{"a b":[` + s + `],"in":{}}` }))
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		literal, err := Literal(json.RawMessage(a))
		require.NoError(t, err)
		condition, err := Compile(Present, "response == "+literal)
		require.NoError(t, err, literal)
		truth, problem := condition.Eval(Vars{Response: json.RawMessage(a)})
		assert.True(t, truth, "%s == %s: %s", a, literal, problem)
		same, err := canon.Equal([]byte(a), []byte(b))
		require.NoError(t, err)
		assert.Equal(t, same, condition.True(Vars{Response: json.RawMessage(b)}), "%s == %s", b, literal)
	})
	_, err := Literal(json.RawMessage(`{"a":`))
	assert.Error(t, err)
}

func TestSelectReachesEveryMember(t *testing.T) {
	elems := []contract.Elem{{Member: "order"}, {Member: "line items"}, {Index: 0, IsItem: true}, {Member: "in"}, {Member: "0"}, {Member: `é"`}}
	text := Select("response", elems)
	assert.Equal(t, `response.order["line items"][0]["in"]["0"]["\u00e9\""]`, text)
	condition, err := Compile(Present, text+" == 1")
	require.NoError(t, err)
	assert.True(t, condition.True(Vars{Response: json.RawMessage(`{"order":{"line items":[{"in":{"0":{"é\"":1}}}]}}`)}))
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`response.owner == tx.id`, `error.code == "NOT_FOUND"`, `response.items.exists(i, i.a == 1.5)`, `-.5e3 == response["x"][0]`,
		`[1,{"a":b"x"}].all(x, has(x.y))`, `a ? b : c`, `response == number("1e400")`, "\"\"\"x\"\"\"", `r'\d'`, "1.\n", `.tx.id == 'a'`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		condition, err := Compile(Present, source)
		if err != nil {
			return
		}
		condition.Eval(Vars{Response: json.RawMessage(`{"owner":"T","items":[{"a":1.5}]}`), Tx: "T"})
		condition.Eval(Vars{Error: &contract.ToolError{Code: "NOT_FOUND"}})
	})
}

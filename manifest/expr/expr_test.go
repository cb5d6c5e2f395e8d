package expr

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestProblemsAreFoundAtLoadWithTheirColumn(t *testing.T) {
	for _, c := range []struct {
		kind         Kind
		source, want string
	}{
		{Present, "", `present condition: the condition is empty (such as response.owner == tx.id)`},
		{Present, "respone.owner == tx.id", `present condition: character 1: unknown variable "respone" (did you mean "response"?)`},
		{Present, "response.owner == txn", `present condition: character 19: unknown variable "txn" (did you mean "tx"?)`},
		{Present, "response.owner == steps.a", `present condition: character 19: unknown variable "steps" (there are response, error, args, result, tx)`},
		{Present, "response.owner == tx.run", `present condition: character 21: tx has no member "run" (there is id)`},
		{Absent, `error.cod == "X"`, `absent condition: character 6: error has no member "cod" (did you mean "code"?)`},
		{Absent, "error.code == 404", `absent condition: character 15: error.code is text, and never equal to the number 404 (write "404")`},
		{Refuse, `response.code == "X"`, `refuse condition: character 1: a refuse condition knows no response (there are error, args, tx)`},
		{Refuse, `result.code == "X"`, `refuse condition: character 1: a refuse condition knows no result (there are error, args, tx)`},
		{Present, `"yes"`, `present condition: character 1: is a text, not a condition (compare it with something: … == …)`},
		{Present, "1 + 1", `present condition: character 1: is a number, not a condition (compare it with something: … == …)`},
		{Present, "[response.a]", `present condition: character 1: is of type list(dyn), not a condition (compare it with something: … == …)`},
		{Present, "null", `present condition: character 1: is null, not a condition (compare it with something: … == …)`},
		{Present, `size(response.items) == "1"`, `present condition: character 22: == cannot be applied to (int, string) (compare values of the same type)`},
		{Present, `response.a == 1 && "x"`, `present condition: character 20: expected type 'bool' but found 'string'`},
		{Present, `lower(response.a) == "x"`, `present condition: character 6: there is no function "lower"`},
		{Present, `response.a.matches("(")`, `present condition: character 20: invalid matches argument`},
		{Present, "response.a == 0.1000000000000000000001", `present condition: character 15: the number 0.1000000000000000000001 would be rounded to 0.1 (write number("…") around it)`},
		{Present, "response.a == 9007199254740993.0", `present condition: character 15: the number 9007199254740993.0 would be compared with rounded integers (write it without a point or exponent, or write number("…") around it)`},
		{Present, "true\n&& respone.a", `present condition: character 9: unknown variable "respone" (did you mean "response"?)`},
	} {
		_, err := Compile(c.kind, c.source)
		require.Error(t, err, c.source)
		assert.Equal(t, c.want, err.Error(), c.source)
	}
	for _, source := range []string{"response.a ==", "(response.a", "response.a = 1", "response.a == 1;", "'"} {
		_, err := Compile(Present, source)
		var e *Error
		require.ErrorAs(t, err, &e, source)
		assert.NotEmpty(t, e.Problems)
		assert.Contains(t, err.Error(), "cannot be read", source)
	}
	_, err := Compile("other", "true")
	assert.ErrorContains(t, err, `no such kind of condition: "other"`)
	_, err = Compile(Present, strings.Repeat("(", 1000)+"true"+strings.Repeat(")", 1000))
	assert.Error(t, err)
	_, err = Compile(Present, "true"+strings.Repeat(" && true", 2000))
	assert.ErrorContains(t, err, "at most 8192 are allowed")
	_, err = Compile(Present, "true ||\xff")
	assert.ErrorContains(t, err, "not UTF-8")
}

func TestAConditionIsTrueOnlyIfItEvaluatesToTrue(t *testing.T) {
	found := Vars{
		Response: json.RawMessage(`{"id":"rt_1","owner":"T","count":2,"tags":["a","b"],"open":true,"nothing":null}`),
		Args:     json.RawMessage(`{"id":7}`),
		Result:   json.RawMessage(`{"id":"rt_1"}`),
		Tx:       "T",
	}
	gone := Vars{Error: &contract.ToolError{Code: "NOT_FOUND", Message: "no route"}, Args: found.Args, Tx: "T"}
	for _, c := range []struct {
		source  string
		vars    Vars
		truth   bool
		problem string
	}{
		{`response.owner == tx.id`, found, true, ""},
		{`response.owner == tx.id`, gone, false, "there is no response: the owner answered with an error"},
		{`response == null`, gone, false, "there is no response: the owner answered with an error"},
		{`response != null`, gone, false, "there is no response: the owner answered with an error"},
		{`error.code == "NOT_FOUND"`, gone, true, ""},
		{`error.code == "NOT_FOUND"`, found, false, "there is no error: the owner answered without one"},
		{`error.code != "NOT_FOUND"`, found, false, "there is no error: the owner answered without one"},
		{`error == null`, found, true, ""},
		{`error == null && response.id == "rt_1"`, found, true, ""},
		{`error == null`, gone, false, ""},
		{`error.message.contains("no route")`, gone, true, ""},
		{`error.code == "NOT_FOUND" || response.count == 0`, gone, true, ""},
		{`response.count == 0 || error.code == "NOT_FOUND"`, gone, true, ""},
		{`error.code == "NOT_FOUND" || response.count == 2`, found, true, ""},
		{`response.missing == 1`, found, false, "there is no member missing"},
		{`response.missing != 1`, found, false, "there is no member missing"},
		{`has(response.missing)`, found, false, ""},
		{`has(response.owner)`, found, true, ""},
		{`response.open`, found, true, ""},
		{`response.owner`, found, false, "what it evaluates to is a text, not true or false"},
		{`response.nothing == null`, found, true, ""},
		{`"b" in response.tags`, found, true, ""},
		{`response.tags[5] == "x"`, found, false, "index out of bounds: 5"},
		{`response.tags.exists(t, t == "a")`, found, true, ""},
		{`response.id == result.id`, found, true, ""},
		{`response.id == result.id`, Vars{Response: found.Response}, false, "there is no member id"},
		{`result == null`, Vars{}, true, ""},
		{`args.id == "7"`, found, false, ""},
		{`args.id != "7"`, found, true, ""},
		{`string(args.id) == "7"`, found, true, ""},
		{`args.id == 7`, Vars{}, false, "there is no member id"},
		{`response.a == 1`, Vars{Response: json.RawMessage(`{"a":1,"a":2}`)}, false,
			`response cannot be read: duplicate key at "/a" (byte 7): the object has this member twice; keep one of them`},
		{`response["line items"][0].sku == "x"`, Vars{Response: json.RawMessage(`{"line items":[{"sku":"x"}]}`)}, true, ""},
		{`response == null`, Vars{Response: json.RawMessage(`null`)}, true, ""},
		{`response == {"a": [1, 2.5, {"b": null}]}`, Vars{Response: json.RawMessage(`{"a":[1.0,25e-1,{"b":null}]}`)}, true, ""},
		{`int(response.owner) == 1`, found, false, "a value of type string cannot be made one of type int"},
	} {
		condition, err := Compile(Present, c.source)
		require.NoError(t, err, c.source)
		truth, problem := condition.Eval(c.vars)
		assert.Equal(t, c.truth, truth, c.source)
		assert.Equal(t, c.problem, problem, c.source)
		assert.Equal(t, c.truth, condition.True(c.vars), c.source)
	}
}

func TestAProblemHoldsNoValueOfTheData(t *testing.T) {
	secret := Vars{Response: json.RawMessage(`{"token":"hunter2","n":[1]}`), Args: json.RawMessage(`{"token":"hunter2"}`)}
	for _, source := range []string{
		`int(response.token) == 1`, `timestamp(response.token) == timestamp("2026-01-01T00:00:00Z")`,
		`duration(response.token) == duration("1s")`, `response.n[response.token] == 1`, `response[response.token] == 1`,
		`"x".matches(response.token + "(")`, `bool(response.token)`, `number(response.token) == 1`, `uint(response.token) == 1u`,
		`response.token`, `response.n.exists(i, i.x == response.token)`, `b"a" == bytes(response.token + response.n)`,
		`args[args.token] == 1`, `{"a": 1}[args.token] == 1`,
	} {
		condition, err := Compile(Present, source)
		require.NoError(t, err, source)
		truth, problem := condition.Eval(secret)
		assert.False(t, truth, source)
		assert.NotEmpty(t, problem, source)
		assert.NotContains(t, problem, "hunter2", source)
	}
}

func TestAConditionCannotRunForLong(t *testing.T) {
	items := "[" + strings.Repeat("1,", 5000) + "1]"
	condition, err := Compile(Present, `response.all(a, response.all(b, response.all(c, a == b && b == c)))`)
	require.NoError(t, err)
	truth, problem := condition.Eval(Vars{Response: json.RawMessage(items)})
	assert.False(t, truth)
	assert.Contains(t, problem, "was stopped")
}

func TestMentionsAreThePathsIntoTheVariables(t *testing.T) {
	for _, c := range []struct {
		source string
		want   []string
	}{
		{`response.owner == tx.id`, []string{"response.owner", "tx.id"}},
		{`response["owner"] == tx["id"]`, []string{"response.owner", "tx.id"}},
		{`has(response.a.b) && response.items[0].id == args["line items"]`, []string{`args["line items"]`, "response.a.b", "response.items[0].id"}},
		{`response.items.exists(i, i.owner == tx.id)`, []string{"response.items", "tx.id"}},
		{`response.items[args.n].id == 1`, []string{"args.n", "response.items"}},
		{`result != null`, []string{"result"}},
		{`type(response.a) == string`, []string{"response.a"}},
		{`(response.a + response.b).c == 1`, []string{"response.a", "response.b"}},
		{`true`, []string{}},
	} {
		got, err := Mentions(Present, c.source)
		require.NoError(t, err, c.source)
		assert.Equal(t, c.want, got, c.source)
	}
	_, err := Mentions(Present, "respons")
	assert.Error(t, err)
}

func TestProofsComeFromComparingTheResponseWithWhatIsOurs(t *testing.T) {
	tx, result := contract.ProofTx, contract.ProofResult
	for _, c := range []struct {
		source string
		want   []contract.Proof
	}{
		{`response.owner == tx.id`, []contract.Proof{tx}},
		{`response.status == "OK" && tx.id == response.owner`, []contract.Proof{tx}},
		{`response.id == result.id`, []contract.Proof{result}},
		{`response.id == result.id && response.owner == tx.id`, []contract.Proof{tx, result}},
		{`response.id == result.id || response.owner == tx.id`, []contract.Proof{tx, result}},
		{`result != null ? response.id == result.id : response.owner == tx.id`, []contract.Proof{tx, result}},
		{`tx.id in response.owners`, []contract.Proof{tx}},
		{`response.note.contains(tx.id)`, []contract.Proof{tx}},
		{`response.items.exists(i, i.owner == tx.id)`, []contract.Proof{tx}},
		{`response.items.exists_one(i, i.owner == tx.id && i.ok)`, []contract.Proof{tx}},
		{`size(response.items.filter(i, i.owner == tx.id)) > 0`, []contract.Proof{tx}},
		{`response.items.all(i, i.owner == tx.id)`, nil},
		{`response.items.exists(i, i.owner == tx.id || i.name == args.name)`, nil},
		{`response.items.exists(i, i.owner != tx.id)`, nil},
		{`response.owner == tx.id || response.name == args.name`, nil},
		{`response.owner != tx.id`, nil},
		{`!(response.owner == tx.id)`, nil},
		{`response.name == args.name`, nil},
		{`tx.id != ""`, nil},
		{`tx.id == args.owner`, nil},
		{`response.id == result`, nil},
		{`true`, nil},
	} {
		condition, err := Compile(Present, c.source)
		require.NoError(t, err, c.source)
		assert.Equal(t, c.want, condition.Proves(), c.source)
	}
}

func TestACachedConditionServesManyAtOnce(t *testing.T) {
	first, err := Cached(Present, `response.owner == tx.id && response.n > 3`)
	require.NoError(t, err)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			again, err := Cached(Present, `response.owner == tx.id && response.n > 3`)
			assert.NoError(t, err)
			assert.Same(t, first, again)
			for range 200 {
				assert.True(t, again.True(Vars{Response: json.RawMessage(`{"owner":"T","n":4}`), Tx: "T"}))
			}
		})
	}
	wait.Wait()
	_, err = Cached(Present, "nonsense(")
	assert.Error(t, err)
	assert.Equal(t, Present, first.Kind())
	assert.Equal(t, `response.owner == tx.id && response.n > 3`, first.Source())
}

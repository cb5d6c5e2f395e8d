package starter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlan(t *testing.T) {
	t.Chdir("..")
	t.Run("wide", func(t *testing.T) {
		requireGolden(t, noDigest(mcpx(t, "plan", "provision-workspace", "-i", "workspace=acme").requireCode(t, 0).out))
	})
	t.Run("narrow", func(t *testing.T) {
		requireGolden(t, noDigest(typed{width: 80}.mcpx(t, "plan", "provision-workspace", "-i", "workspace=acme").requireCode(t, 0).out))
	})
}

// noDigest leaves the digest out, which changes with every contract of the examples.
func noDigest(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	return first[:strings.Index(first, "digest ")] + "digest …\n" + rest
}

func TestPlanAsJSON(t *testing.T) {
	var d struct {
		Plan  string
		Input json.RawMessage
		Waves [][]struct{ Step, Tool string }
		Undo  [][]struct{ Step, Tool string }
	}
	mcpx(t, "plan", "provision-workspace", "-i", "workspace=acme", "--json", "--manifest", examplesFile(t)).requireCode(t, 0).decode(t, &d)
	require.Equal(t, "provision-workspace", d.Plan)
	require.JSONEq(t, `{"workspace": "acme", "size_gb": 10, "version": "1.0.0"}`, string(d.Input))
	require.Len(t, d.Waves, 4)
	require.Equal(t, "database/create_database", d.Waves[0][0].Tool)
	require.Equal(t, "frontend/delete_deployment", d.Undo[0][0].Tool)
}

// anything is a plan that takes any input, and shows it.
const anything = `
version: 1
servers: {box: {http: {url: "http://127.0.0.1:1/mcp"}}}
tools:
  box/put:
    sensitive: [token]
    inspect: {tool: get, args: {name: "${args.name}"}, present: "response.owner == tx.id", absent: error.code == "NOT_FOUND"}
    compensate: {tool: remove, args: {name: "${args.name}"}}
plans:
  - name: anything
    input:
      type: object
      properties:
        name: {type: string}
        size: {type: integer}
        ratio: {type: number}
        on: {type: boolean}
        tags: {type: array}
        some: {type: [integer, "null"]}
        mixed: {type: [string, integer]}
        choice: {enum: [one, two]}
        free: {}
        token: {type: string}
    steps:
      - {id: put, tool: box/put, args: {name: "${input.name}", owner: "${tx.id}", token: "${input.token}"}}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestInputIsReadAsTheSchemaWantsIt(t *testing.T) {
	file := write(t, "mcpx.yaml", anything)
	input := func(t *testing.T, who typed, args ...string) string {
		t.Helper()
		var d struct{ Input json.RawMessage }
		who.mcpx(t, append([]string{"plan", "anything", "--json", "--manifest", file, "-i", "name=n", "-i", "token=t"}, args...)...).requireCode(t, 0).decode(t, &d)
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(d.Input, &members))
		delete(members, "name")
		delete(members, "token")
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(members))
		return strings.TrimSpace(b.String())
	}
	for _, test := range []struct{ pair, want string }{
		{"size=12345678901234567890", `{"size":12345678901234567890}`},
		{"ratio=1.10", `{"ratio":1.10}`},
		{"on=true", `{"on":true}`},
		{`tags=["a", 1]`, `{"tags":["a",1]}`},
		{"some=null", `{"some":null}`},
		{"some=5", `{"some":5}`},
		{"mixed=5", `{"mixed":5}`},
		{"mixed=five", `{"mixed":"five"}`},
		{"choice=one", `{"choice":"one"}`},
		{`choice="two"`, `{"choice":"two"}`},
		{"free=5", `{"free":5}`},
		{"free=a=b <c>", `{"free":"a=b <c>"}`},
		{`free={"a": 1}`, `{"free":{"a":1}}`},
		{"free={broken", `{"free":"{broken"}`},
		{"free=", `{"free":""}`},
		{`free="{\"a\":1,\"a\":2}"`, `{"free":"{\"a\":1,\"a\":2}"}`},
		{"unknown=1e400", `{"unknown":1e400}`},
	} {
		t.Run(test.pair, func(t *testing.T) {
			require.Equal(t, test.want, input(t, typed{}, "-i", test.pair))
		})
	}
	t.Run("text stays text", func(t *testing.T) {
		var d struct{ Input struct{ Name string } }
		mcpx(t, "plan", "anything", "--json", "--manifest", file, "-i", "name=0123", "-i", "token=t").requireCode(t, 0).decode(t, &d)
		require.Equal(t, "0123", d.Input.Name)
	})
	t.Run("a file, with one member over it", func(t *testing.T) {
		from := write(t, "input.json", `{"size": 1, "on": false}`)
		require.Equal(t, `{"on":false,"size":2}`, input(t, typed{}, "--input", from, "-i", "size=2"))
	})
	t.Run("standard input", func(t *testing.T) {
		require.Equal(t, `{"size":10000000000000000001}`, input(t, typed{stdin: ` {"size": 10000000000000000001} `}, "--input", "-"))
	})
	for name, text := range map[string]string{"a list": "[1]", "two values": "{} {}", "a member twice": `{"a":1,"a":2}`, "nothing": "", "null": "null"} {
		t.Run("refused: "+name, func(t *testing.T) {
			typed{stdin: text}.mcpx(t, "plan", "anything", "--manifest", file, "--input", "-").requireCode(t, 2)
		})
	}
	for _, text := range []string{"{\"name\": \"a\xffb\"}", `{"name": "\ud800"}`} {
		r := typed{stdin: text}.mcpx(t, "plan", "anything", "--manifest", file, "--input", "-").requireCode(t, 2)
		require.Contains(t, r.err, "name", "where it is")
	}
	for _, pair := range []string{
		`free={"a":1,"a":2}`, `free="\ud800"`, `unknown=[{"a":1,"a":2}]`, "size=1e99999999", `tags=["\udc00"]`, "name=\xff", "free={\"a\": \"\xff\"}",
	} {
		t.Run("refused: "+pair, func(t *testing.T) {
			key, _, _ := strings.Cut(pair, "=")
			r := mcpx(t, "plan", "anything", "--manifest", file, "-i", pair).requireCode(t, 2)
			require.Contains(t, r.err, fmt.Sprintf("input %q", key))
		})
	}
	t.Run("what is text to the schema is text", func(t *testing.T) {
		var d struct{ Input struct{ Name string } }
		mcpx(t, "plan", "anything", "--json", "--manifest", file, "-i", `name={"a":1,"a":2}`, "-i", "token=t").requireCode(t, 0).decode(t, &d)
		require.Equal(t, `{"a":1,"a":2}`, d.Input.Name)
	})
}

func TestAPlanShowsTheWarningsAboutItsTools(t *testing.T) {
	text := strings.Replace(anything, `, token: "${input.token}"`, "", 1) +
		"  - {name: other, steps: [{id: look, tool: box/look}]}\n"
	text = strings.Replace(text, "plans:", "  box/look: {risk: read_only}\nplans:", 1)
	file := write(t, "mcpx.yaml", text)
	r := mcpx(t, "plan", "anything", "--manifest", file, "-i", "name=n").requireCode(t, 0)
	require.Contains(t, r.out, "not sealed yet", "its contract has it, whatever the plan passes")
	require.Equal(t, 1, strings.Count(r.out, "not sealed yet"))
	r = mcpx(t, "plan", "other", "--manifest", file).requireCode(t, 0)
	require.Contains(t, r.out, "Nothing to say")
}

func TestSecretsOfAPlanStayOffTheScreen(t *testing.T) {
	file := write(t, "mcpx.yaml", anything)
	for _, format := range [][]string{nil, {"--json"}} {
		r := mcpx(t, append([]string{"plan", "anything", "--manifest", file, "-i", "name=n", "-i", "token=hunter2"}, format...)...).requireCode(t, 0)
		require.NotContains(t, r.out+r.err, "hunter2")
		require.Contains(t, r.out, "[REDACTED]")
	}
}

func TestHostileInputIsHarmlessOnTheScreen(t *testing.T) {
	file := write(t, "mcpx.yaml", anything)
	evil := "\x1b[2J\u202e\u009b31m\nCOMMITTED"
	r := mcpx(t, "plan", "anything", "--manifest", file, "-i", "token=t", "-i", "name="+evil).requireCode(t, 0)
	require.NotContains(t, r.out, "\x1b")
	require.NotContains(t, r.out, "\u202e")
	require.NotContains(t, r.out, "\u009b")
	require.NotContains(t, r.out, "\nCOMMITTED")

	var d struct{ Input struct{ Name string } }
	r = mcpx(t, "plan", "anything", "--json", "--manifest", file, "-i", "token=t", "-i", "name="+evil).requireCode(t, 0)
	require.NotContains(t, r.out, "\u202e")
	require.NotContains(t, r.out, "\u009b")
	r.decode(t, &d)
	require.Equal(t, evil, d.Input.Name, "JSON keeps the value")

	r = mcpx(t, "plan", evil, "--manifest", file).requireCode(t, 2)
	require.NotContains(t, r.err, "\x1b")
	require.NotContains(t, r.err, "\u009b")
}

func TestOwnersThatCannotBeAskedMakeADryRunNoFailure(t *testing.T) {
	file := write(t, "mcpx.yaml", anything)
	var d struct {
		Inspected []struct{ Step, Tool, Verdict, Why string }
	}
	mcpx(t, "plan", "anything", "--inspect", "--json", "--manifest", file, "-i", "name=n", "-i", "token=t").requireCode(t, 0).decode(t, &d)
	require.Len(t, d.Inspected, 1)
	require.Equal(t, "box/get", d.Inspected[0].Tool)
	require.Equal(t, "inconclusive", d.Inspected[0].Verdict)
	require.NotEmpty(t, d.Inspected[0].Why)

	r := mcpx(t, "plan", "anything", "--inspect", "--manifest", file, "-i", "name=n", "-i", "token=t").requireCode(t, 0)
	require.Empty(t, r.err, "the table says it")
}

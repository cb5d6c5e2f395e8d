package workspace

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func compile(t testing.TB, schema object) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.encode()))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("mem:///schema", doc))
	compiled, err := compiler.Compile("mem:///schema")
	require.NoError(t, err)
	return compiled
}

func conforms(t testing.TB, schema *jsonschema.Schema, raw []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return schema.Validate(v)
}

// The published input schema and the check of arguments accept the same calls.
func TestPublishedInputSchemaIsTheOneEnforced(t *testing.T) {
	values := []string{
		`"x"`, `""`, `"ü😀"`, `"` + strings.Repeat("é", maxText) + `"`, `"` + strings.Repeat("é", maxText+1) + `"`,
		`0`, `1`, `-1`, `-0`, `1.0`, `1.5`, `1e2`, `1E18`, `1e19`, `100e-2`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`, `9223372036854775807.0`,
		`null`, `true`, `[]`, `{}`, `["x"]`,
	}
	for _, app := range Apps() {
		for tool, in := range map[string]input{
			app.Create: app.createInput(), app.Get: app.getInput(), app.Delete: app.deleteInput(), app.List: app.listInput(),
		} {
			t.Run(tool, func(t *testing.T) {
				schema := compile(t, in.schema())
				names := append(in.names(), "name", "id", "owner", "Name", "other")
				rapid.Check(t, func(rt *rapid.T) {
					args := map[string]json.RawMessage{}
					for _, name := range names {
						if !rapid.Bool().Draw(rt, "with "+name) {
							continue
						}
						usual := rapid.Bool().Draw(rt, "usual "+name)
						value := `"x"`
						if !usual {
							value = rapid.SampledFrom(values).Draw(rt, name)
						}
						args[name] = json.RawMessage(value)
					}
					for _, field := range in.fields {
						if _, given := args[field.name]; field.required && !given && rapid.IntRange(0, 9).Draw(rt, "fill") > 0 {
							args[field.name] = json.RawMessage(`"x"`)
						}
					}
					raw, err := json.Marshal(args)
					if err != nil {
						rt.Fatal(err)
					}
					_, refused := in.parse(raw)
					invalid := conforms(t, schema, raw)
					if (refused == nil) != (invalid == nil) {
						rt.Fatalf("%s\nthe check says: %v\nthe schema says: %v", raw, refused, invalid)
					}
				})
			})
		}
	}
}

func TestEnormousNumberIsRefusedWithoutBeingComputed(t *testing.T) {
	app, err := AppOf(Database)
	require.NoError(t, err)
	for _, size := range []string{`1e999999999`, `1e-999999999`, strings.Repeat("9", 100_000)} {
		_, err := app.createInput().parse([]byte(`{"name":"d","owner":"o","size_gb":` + size + `}`))
		require.ErrorContains(t, err, "size_gb")
		assert.Less(t, len(err.Error()), 200)
	}
}

func TestEveryAnswerConformsToItsPublishedOutputSchema(t *testing.T) {
	for _, app := range Apps() {
		for _, args := range samples[app.Kind] {
			parsed, err := app.createInput().parse([]byte(args))
			require.NoError(t, err, args)
			store, err := openStore(t.Context(), t.TempDir()+"/db")
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, store.close()) })
			a := newApplication(t.Context(), app, store, testLog(t))

			outputs := map[string]*jsonschema.Schema{}
			runs := map[string]operation{}
			for _, op := range a.operations() {
				outputs[op.name], runs[op.name] = compile(t, op.output), op
			}
			check := func(tool string, args values, isError bool) json.RawMessage {
				answer, err := runs[tool].run(t.Context(), args)
				require.NoError(t, err)
				require.Equal(t, isError, answer.IsError)
				raw := answer.StructuredContent.(json.RawMessage)
				assert.NoError(t, conforms(t, outputs[tool], raw), "%s: %s", tool, raw)
				return raw
			}
			var made Resource
			require.NoError(t, json.Unmarshal(check(app.Create, parsed, false), &made))
			assert.WithinDuration(t, time.Now(), made.CreatedAt, time.Hour)
			check(app.Create, parsed, false)
			check(app.Get, values{"name": made.Name}, false)
			check(app.List, values{}, false)
			check(app.Delete, values{"id": made.ID}, false)
			check(app.Delete, values{"id": made.ID}, true)
			check(app.Get, values{"id": made.ID}, true)
			for tool, schema := range outputs {
				for _, other := range []string{`{}`, `{"error":{}}`, `{"error":{"code":"NOT_FOUND","message":"m"},"id":"x"}`, `{"error":{"code":"NOT_FOUND","message":"m"},"count":1}`} {
					assert.Error(t, conforms(t, schema, []byte(other)), "%s: %s", tool, other)
				}
			}
		}
	}
}

func TestAnnotationsAreHonest(t *testing.T) {
	type hints struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint bool }
	for _, app := range Apps() {
		a := newApplication(t.Context(), app, nil, testLog(t))
		tools := a.mcpServer().ListTools()
		assert.Len(t, tools, len(app.Tools()))
		for tool, want := range map[string]hints{
			app.Create: {},
			app.Get:    {ReadOnlyHint: true, IdempotentHint: true},
			app.Delete: {DestructiveHint: true, IdempotentHint: true},
			app.List:   {ReadOnlyHint: true, IdempotentHint: true},
		} {
			require.Contains(t, tools, tool)
			got := tools[tool].Tool.Annotations
			assert.Equal(t, want, hints{*got.ReadOnlyHint, *got.DestructiveHint, *got.IdempotentHint, *got.OpenWorldHint}, tool)
			assert.NotEmpty(t, tools[tool].Tool.Description)
		}
	}
}

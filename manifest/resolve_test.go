package manifest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

const provision = `
version: 1
servers: {a: {http: {url: "http://h/"}}}
tools: {a/x: {key: all}}
plans:
  provision:
    key: [workspace]
    input:
      type: object
      required: [workspace]
      additionalProperties: false
      properties:
        workspace: {type: string, pattern: "^[a-z-]+$", minLength: 2, maxLength: 8}
        size: {type: integer, minimum: 1, maximum: 9007199254740993, default: 10}
        kind: {enum: [small, large]}
        mail: {type: string, format: email}
        options:
          type: object
          properties: {fast: {type: boolean, default: true}, deep: {type: object, default: {a: [1.50]}}}
        list: {type: array, maxItems: 2, uniqueItems: true, items: {$ref: "#/$defs/item"}}
        either: {oneOf: [{type: string}, {type: integer}]}
      $defs: {item: {type: object, properties: {n: {type: number, exclusiveMinimum: 0.5, default: 1}}}}
    steps: [{id: s, tool: a/x, args: {n: "${input.size}"}}]
  free: {steps: [{id: s, tool: a/x}]}
`

func TestAnInputIsCheckedAgainstTheSchemaAndItsDefaultsAreFilledIn(t *testing.T) {
	m := load(t, provision)
	for input, want := range map[string]string{
		`{"workspace":"ab"}`:                                                        `{"size":10,"workspace":"ab"}`,
		` {"workspace": "ab", "size": 9007199254740993} `:                           `{"workspace": "ab", "size": 9007199254740993}`,
		`{"workspace":"ab","size":1.0}`:                                             `{"workspace":"ab","size":1.0}`,
		`{"workspace":"ab","options":{}}`:                                           `{"options":{"deep":{"a":[1.50]},"fast":true},"size":10,"workspace":"ab"}`,
		`{"workspace":"ab","size":2,"options":{"fast":false}}`:                      `{"options":{"deep":{"a":[1.50]},"fast":false},"size":2,"workspace":"ab"}`,
		`{"workspace":"ab","size":2,"list":[{"n":100000000000000000000000001},{}]}`: `{"list":[{"n":100000000000000000000000001},{"n":1}],"size":2,"workspace":"ab"}`,
	} {
		got, err := m.Resolve(contract.Start{Plan: "provision", Input: json.RawMessage(input)})
		require.NoError(t, err, input)
		assert.Equal(t, want, string(got.Input), input)
		assert.Equal(t, m.Plans[0].Definition, got.Definition)
	}
	for input, want := range map[string]string{
		``:                              `/workspace is missing, and the schema requires it`,
		`{"workspace":5}`:               `/workspace is of type number; the schema says string`,
		`{"workspace":"A secret"}`:      `/workspace does not match the pattern ^[a-z-]+$`,
		`{"workspace":"a"}`:             `/workspace is too short: the schema wants at least 2 characters`,
		`{"workspace":"aaaaaaaaaa"}`:    `/workspace is too long: the schema allows at most 8 characters`,
		`{"workspace":"ab","size":0}`:   `/size is too small: the schema says at least 1`,
		`{"workspace":"ab","size":1.5}`: `/size is of type number; the schema says integer`,
		`{"workspace":"ab","size":9007199254740994}`:            `/size is too large: the schema says at most 9007199254740993`,
		`{"workspace":"ab","kind":"medium"}`:                    `/kind is none of the values that the schema lists: ["small","large"]`,
		`{"workspace":"ab","mail":"hunter2"}`:                   `/mail is not in the format email`,
		`{"workspace":"ab","sise":1}`:                           `/sise is not in the schema (did you mean "size"?)`,
		`{"workspace":"ab","list":[{},{},{}]}`:                  `/list has too many items: the schema allows at most 2; /list has equal items at 0 and 1; the schema wants each once`,
		`{"workspace":"ab","list":[{"n":0.5}]}`:                 `/list/0/n is too small: the schema says more than 0.5`,
		`{"workspace":"ab","either":true}`:                      `/either satisfies none of the alternatives of the schema`,
		`[]`:                                                    `it is not an object; pass a JSON object`,
		`{"workspace":"ab","workspace":"cd"}`:                   `duplicate key at "/workspace"`,
		`{"workspace":`:                                         `not one JSON value`,
		`{"workspace":"` + strings.Repeat("a", MaxInput) + `"}`: `it has 524304 bytes, at most 524288 are allowed`,
	} {
		_, err := m.Resolve(contract.Start{Plan: "provision", Input: json.RawMessage(input)})
		require.ErrorIs(t, err, ErrInput, input)
		var refused *InputError
		require.ErrorAs(t, err, &refused)
		assert.ErrorContains(t, err, `the input of plan "provision" is not accepted: `)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
		assert.NotContains(t, err.Error(), "hunter2")
	}
	_, err := m.Resolve(contract.Start{Plan: "provisoin"})
	require.ErrorIs(t, err, ErrUnknownPlan)
	got, err := m.Resolve(contract.Start{Plan: "free"})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(got.Input))
}

func TestFillingInNeverChangesTheSchema(t *testing.T) {
	m := load(t, provision)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				got, err := m.Resolve(contract.Start{Plan: "provision", Input: json.RawMessage(`{"workspace":"ab","options":{},"list":[{}]}`)})
				assert.NoError(t, err)
				assert.Equal(t, `{"list":[{"n":1}],"options":{"deep":{"a":[1.50]},"fast":true},"size":10,"workspace":"ab"}`, string(got.Input))
			}
		})
	}
	wait.Wait()
}

func TestTheIdentityIsThatOfTheLogicalKeys(t *testing.T) {
	m := load(t, provision)
	identity := func(plan, input string) (contract.Identity, string) {
		id, workflow, err := m.Identity(plan, json.RawMessage(input))
		require.NoError(t, err)
		return id, workflow
	}
	one, workflow := identity("provision", `{"workspace":"ab"}`)
	fingerprint, err := canon.Fingerprint(canon.Plan, "provision", []byte(`{"workspace":"ab"}`))
	require.NoError(t, err)
	assert.Equal(t, fingerprint, one.Fingerprint)
	assert.Equal(t, "provision/"+fingerprint, workflow)
	assert.Equal(t, m.Plans[0].Definition.Digest, one.Definition)
	assert.Equal(t, "provision", contract.PlanOf(workflow))

	same, _ := identity("provision", `{"size":10.0, "workspace":"ab"}`)
	assert.Equal(t, one, same, "a default that is spelled out, or spelled otherwise, is the same input")
	other, otherWorkflow := identity("provision", `{"workspace":"ab","size":11}`)
	assert.Equal(t, workflow, otherWorkflow, "the size is no logical key")
	assert.NotEqual(t, one.Inputs["size"], other.Inputs["size"], "and yet another argument")
	assert.Equal(t, one.Inputs["workspace"], other.Inputs["workspace"])
	_, third := identity("provision", `{"workspace":"cd"}`)
	assert.NotEqual(t, workflow, third)

	all, _ := identity("free", `{"a":1,"b":2}`)
	fingerprint, err = canon.Fingerprint(canon.Plan, "free", []byte(`{"a":1,"b":2}`))
	require.NoError(t, err)
	assert.Equal(t, fingerprint, all.Fingerprint, "without a key every member counts")

	custom, workflow, err := m.IdentityFor("provision", json.RawMessage(`{"workspace":"ab"}`), "order-7")
	require.NoError(t, err)
	assert.Equal(t, "provision/order-7", workflow)
	assert.Equal(t, one.Inputs, custom.Inputs)
	assert.NotEqual(t, one.Fingerprint, custom.Fingerprint)
	for _, key := range []string{"", "a\nb", "\xff", strings.Repeat("x", 501), "a\u200bb"} {
		_, _, err := m.IdentityFor("provision", json.RawMessage(`{"workspace":"ab"}`), key)
		assert.ErrorIs(t, err, ErrKey, key)
	}
	_, _, err = m.IdentityFor("nothing", nil, "x")
	require.ErrorIs(t, err, ErrUnknownPlan)
	_, _, err = m.Identity("provision", json.RawMessage(`{"workspace":1}`))
	require.ErrorIs(t, err, ErrInput)
	_, _, err = m.Identity("nothing", nil)
	require.ErrorIs(t, err, ErrUnknownPlan)
}

func TestAMissingLogicalKeyIsAnErrorAndNotASmallerKey(t *testing.T) {
	m := load(t, `
version: 1
servers: {a: {http: {url: "http://h/"}}}
plans: {p: {key: [order.id, "x.y"], steps: [{id: s, tool: a/x}]}}
`)
	_, _, err := m.Identity("p", json.RawMessage(`{"order":{}}`))
	require.ErrorIs(t, err, ErrInput)
	assert.ErrorContains(t, err, `no "order.id", no "x.y"`)
	_, _, err = m.Identity("p", json.RawMessage(`{"order":{"id":null},"x.y":1}`))
	require.NoError(t, err)
}

func TestAPlanTooLargeToBePinnedIsRefusedWithTheNumbers(t *testing.T) {
	_, err := parseAlone("mcpx.yaml", []byte(`
version: 1
servers: {a: {http: {url: "http://h/"}}}
x-large: &large "`+strings.Repeat("x", 1<<20)+`"
plans: {p: {steps: [{id: s, tool: a/x, args: {a: *large}}, {id: t, tool: a/x, args: {a: *large}}]}}
`))
	assert.ErrorContains(t, err, "the plan has 2097")
	assert.ErrorContains(t, err, "at most 1048576 are allowed")
}

func TestADefaultLeadingIntoItselfEnds(t *testing.T) {
	m := load(t, `
version: 1
servers: {a: {http: {url: "http://h/"}}}
plans:
  p:
    input: {type: object, properties: {a: {$ref: "#", default: {}}, b: {default: 5}}, allOf: [{properties: {a: {properties: {c: {default: 1}}}}}]}
    steps: [{id: s, tool: a/x}]
`)
	for range 2 {
		got, err := m.Resolve(contract.Start{Plan: "p", Input: json.RawMessage(`{"a":{}}`)})
		require.NoError(t, err)
		assert.Equal(t, `{"a":{"a":{},"b":5,"c":1},"b":5}`, string(got.Input))
	}
}

// plans draws the steps of a plan without cycles, as they might be written, and shuffled.
func plans(t *rapid.T) []planStep {
	n := rapid.IntRange(1, 12).Draw(t, "steps")
	steps := make([]planStep, n)
	for i := range steps {
		steps[i].ID = fmt.Sprintf("s%d", i)
		for j := range i {
			if rapid.IntRange(0, 3).Draw(t, "needs") == 0 {
				steps[i].Needs = append(steps[i].Needs, fmt.Sprintf("s%d", j))
			}
		}
	}
	seed := rapid.Uint64().Draw(t, "seed")
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	return steps
}

func TestStepsComeAfterWhatTheyNeedAndOtherwiseAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := plans(t)
		g := graphOf(steps)
		require.Nil(t, g.cycle())
		order := g.order()
		require.Len(t, order, len(steps))
		at := map[string]int{}
		for i, id := range order {
			at[id] = i
		}
		written := map[string]int{}
		for i, s := range steps {
			written[s.ID] = i
			for _, need := range s.Needs {
				assert.Less(t, at[need], at[s.ID])
				assert.True(t, g.before(s.ID)[need])
			}
			assert.False(t, g.before(s.ID)[s.ID])
		}
		// Of two neighbours, the later written comes first only if the other had to wait for it.
		for i := 1; i < len(order); i++ {
			if written[order[i]] < written[order[i-1]] {
				assert.Contains(t, g.needs[order[i]], order[i-1])
			}
		}
	})
}

func TestEveryCycleIsFoundAndIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := plans(t)
		from, to := rapid.IntRange(0, len(steps)-1).Draw(t, "from"), rapid.IntRange(0, len(steps)-1).Draw(t, "to")
		g := graphOf(steps)
		closes := from == to || g.before(steps[to].ID)[steps[from].ID]
		steps[from].Needs = append(steps[from].Needs, steps[to].ID)
		g = graphOf(steps)
		way := g.cycle()
		require.Equal(t, closes, way != nil)
		for i := 1; i < len(way); i++ {
			assert.Contains(t, g.needs[way[i]], way[i-1])
		}
		if way != nil {
			assert.Equal(t, way[0], way[len(way)-1])
		}
	})
}

// shuffled writes a node as JSON with its members in another order.
func shuffled(r *rand.Rand, n *node) string {
	switch n.kind {
	case kindObject:
		pairs := make([]string, len(n.members))
		for i, m := range n.members {
			pairs[i] = string(quote(m.name)) + ": " + shuffled(r, m.value)
		}
		r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		return "{" + strings.Join(pairs, ",\n ") + "}"
	case kindList:
		items := make([]string, len(n.items))
		for i, item := range n.items {
			items[i] = shuffled(r, item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return string(n.json())
}

func TestTheDigestIsThatOfTheMeaningAndNotOfTheText(t *testing.T) {
	for _, path := range append(files(t, "lint"), "../mcpx.yaml", "testdata/agentx/with-plans.json") {
		text, err := readFile(path)
		require.NoError(t, err)
		original, err := parseAlone(path, text)
		require.NoError(t, err)
		root := read(t, path, string(text))
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			name := rapid.SampledFrom([]string{"other.json", "other.yaml"}).Draw(t, "name")
			m, err := parseAlone(name, []byte(shuffled(r, root)))
			require.NoError(t, err)
			require.Len(t, m.Plans, len(original.Plans))
			for _, p := range original.Plans {
				same, err := m.Plan(p.Name)
				require.NoError(t, err)
				require.Equal(t, p.Definition.Digest, same.Definition.Digest)
				first, err := m.Resolve(contract.Start{Plan: p.Name, Input: json.RawMessage(`{"workspace":"ab"}`)})
				require.NoError(t, err)
				again, err := m.Resolve(contract.Start{Plan: p.Name, Input: json.RawMessage(`{"workspace":"ab"}`)})
				require.NoError(t, err)
				require.Equal(t, first, again)
				bare := same.Definition
				bare.Digest, bare.Warnings = "", nil
				digest, err := canon.DigestValue(bare)
				require.NoError(t, err)
				require.Equal(t, digest, same.Definition.Digest)
			}
		})
	}
}

func TestAnyChangeOfPlanContractOrServerChangesTheDigest(t *testing.T) {
	base := load(t, provision).Plans[0].Definition.Digest
	for _, change := range [][2]string{
		{"http://h/", "http://i/"}, {"a/x: {key: all}", "a/x: {key: all, retries: 9}"}, {"n: \"${input.size}\"", "n: \"${input.kind}\""},
		{"key: [workspace]\n", "key: [workspace]\n    ttl: 1h\n"}, {"id: s", "id: t"},
	} {
		changed := strings.Replace(provision, change[0], change[1], 1)
		require.NotEqual(t, provision, changed)
		assert.NotEqual(t, base, load(t, changed).Plans[0].Definition.Digest, change[1])
	}
}

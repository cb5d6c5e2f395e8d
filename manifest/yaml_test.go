package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/canon"
)

// read reads a text that must be readable.
func read(t require.TestingT, name, text string) *node {
	p := &problems{}
	n := readText(p, name, []byte(text))
	require.NoError(t, p.err(), text)
	require.NotNil(t, n, text)
	return n
}

func TestScalarsMeanWhatYAMLSaysAndNumbersKeepEveryDigit(t *testing.T) {
	for yaml, want := range map[string]string{
		"1":                       `1`,
		"+1":                      `1`,
		"-0":                      `-0`,
		"18446744073709551616":    `18446744073709551616`,
		"123456789012345678901.5": `123456789012345678901.5`,
		"1e3":                     `1e3`,
		"1E+3":                    `1E+3`,
		"1.50":                    `1.50`,
		".5":                      `0.5`,
		"-.5e-3":                  `-0.5e-3`,
		"1.":                      `1`,
		"1.e2":                    `1e2`,
		"01.5":                    `1.5`,
		"0x1F":                    `31`,
		"0xFFFFFFFFFFFFFFFFFF":    `4722366482869645213695`,
		"0o17":                    `15`,
		"0":                       `0`,
		"~":                       `null`,
		"null":                    `null`,
		"NULL":                    `null`,
		"":                        `null`,
		"true":                    `true`,
		"FALSE":                   `false`,
		"tRUE":                    `"tRUE"`,
		"yes":                     `"yes"`,
		"on":                      `"on"`,
		"No":                      `"No"`,
		"2026-01-02":              `"2026-01-02"`,
		"2026-01-02T03:04:05Z":    `"2026-01-02T03:04:05Z"`,
		"12:30":                   `"12:30"`,
		"1.2.3":                   `"1.2.3"`,
		"0x":                      `"0x"`,
		"1e":                      `"1e"`,
		"5s":                      `"5s"`,
		"-":                       `[null]`,
		"a b":                     `"a b"`,
		"a\n  b":                  `"a b"`,
		`"010"`:                   `"010"`,
		`'1e3'`:                   `"1e3"`,
		`'it''s'`:                 `"it's"`,
		`"a\tb\u00e9\U0001F600"`:  `"a\tbé😀"`,
		`"\ud83d\ude00"`:          `"😀"`,
		"|\n  a\n   b\n":          `"a\n b\n"`,
		"|-\n  a\n":               `"a"`,
		">\n  a\n  b\n\n  c\n":    `"a b\nc\n"`,
		"[1, [], {}]":             `[1,[],{}]`,
		"{a: 1, 'b': x, 3: y}":    `{"a":1,"b":"x","3":"y"}`,
		"error.code == \"X\"":     `"error.code == \"X\""`,
		"${input.x}-db":           `"${input.x}-db"`,
		"a # b":                   `"a"`,
		"a#b":                     `"a#b"`,
	} {
		indent := ""
		if strings.HasPrefix(yaml, "-") && len(yaml) == 1 {
			indent = "\n  "
		}
		got := read(t, "x.yaml", "v: "+indent+yaml+"\nend: 1\n")
		require.NotNil(t, got.get("v"), yaml)
		assert.Equal(t, want, string(got.get("v").json()), yaml)
		assert.NotNil(t, got.get("end"), yaml)
	}
}

func TestAnchorsAndMergeKeysShareValues(t *testing.T) {
	got := read(t, "x.yaml", `
base: &base {a: 1, b: 2}
more: &more
  b: 3
  c: 4
list: &list [1, 2]
one: {<<: *base, b: 9}
two:
  <<: [*base, *more]
  d: 5
quoted: {"<<": 1}
items: [*list, *base]
again: &base x
last: *base
`)
	assert.JSONEq(t, `{"a":1,"b":9}`, string(got.get("one").json()))
	assert.JSONEq(t, `{"a":1,"b":2,"c":4,"d":5}`, string(got.get("two").json()))
	assert.JSONEq(t, `{"<<":1}`, string(got.get("quoted").json()))
	assert.JSONEq(t, `[[1,2],{"a":1,"b":2}]`, string(got.get("items").json()))
	assert.JSONEq(t, `"x"`, string(got.get("last").json()))
}

func TestValuesKnowTheirPlaces(t *testing.T) {
	text := "# comment\r\na: 1\r\nb:\r\n  - x: [é, \"y\", z]\r\n    w: |\r\n      text\r\n  - {ü: 'q', v: plain text}\r\nlast: \"a b\"\r\n"
	got := read(t, "x.yaml", text)
	at := func(n *node) string { return fmt.Sprintf("%d:%d/%d", n.line, n.column, n.textColumn) }
	first, second := got.get("b").items[0], got.get("b").items[1]
	assert.Equal(t, "2:4/0", at(got.get("a")))
	assert.Equal(t, "4:5/0", at(first))
	assert.Equal(t, "4:9/9", at(first.get("x").items[0]))
	assert.Equal(t, "4:12/13", at(first.get("x").items[1]))
	assert.Equal(t, "4:17/17", at(first.get("x").items[2]))
	assert.Equal(t, "5:8/0", at(first.get("w")))
	assert.Equal(t, "7:5/0", at(second))
	assert.Equal(t, "7:9/10", at(second.get("ü")))
	assert.Equal(t, "7:17/17", at(second.get("v")))
	assert.Equal(t, 14, second.member("v").column)
	assert.Equal(t, "8:7/8", at(got.get("last")))

	got = read(t, "x.json", "{\n\t\"é\": [1, \"x\\n\",\n\t\t\"y\"], \"o\": {\"p\": null}\n}")
	assert.Equal(t, "2:7/0", at(got.get("é")))
	assert.Equal(t, "2:11/0", at(got.get("é").items[1]))
	assert.Equal(t, "3:3/4", at(got.get("é").items[2]))
	assert.Equal(t, "3:14/0", at(got.get("o")))
	assert.Equal(t, "3:20/0", at(got.get("o").get("p")))
}

// trees draws JSON values as text.
func trees(depth int) *rapid.Generator[string] {
	texts := rapid.OneOf(
		rapid.StringMatching(`[a-zé😀][a-z0-9 _:#{}\[\],&*!|>'"%@.\\$-]{0,12}`),
		rapid.SampledFrom([]string{"", " ", "yes", "null", "~", "010", "1e3", "- a", "a: b", "# c", "\n", "a\nb\n", "\t", "<<", "*a", "\u2028", "\u0085"}),
	)
	quoted := rapid.Map(texts, func(s string) string { return string(quote(s)) })
	scalars := rapid.OneOf(
		quoted,
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1.50", "1e3", "18446744073709551616", "-1.5E-7", "0.1000000000000000000001"}),
		rapid.Map(rapid.Int64(), func(i int64) string { return fmt.Sprint(i) }),
	)
	if depth == 0 {
		return scalars
	}
	inner := trees(depth - 1)
	return rapid.OneOf(scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 4), func(items []string) string { return "[" + strings.Join(items, ",") + "]" }),
		rapid.Map(rapid.MapOfN(quoted, inner, 0, 4), func(members map[string]string) string {
			var pairs []string
			for name, value := range members {
				pairs = append(pairs, name+":"+value)
			}
			return "{" + strings.Join(pairs, ",") + "}"
		}),
	)
}

// block writes a node as YAML in block style, drawing the style of each scalar.
func block(t *rapid.T, b *strings.Builder, n *node, indent string) {
	switch {
	case n.kind == kindObject && len(n.members) > 0:
		for _, m := range n.members {
			b.WriteString("\n" + indent + string(quote(m.name)) + ":")
			block(t, b, m.value, indent+"  ")
		}
	case n.kind == kindList && len(n.items) > 0:
		for _, item := range n.items {
			b.WriteString("\n" + indent + "-")
			block(t, b, item, indent+"  ")
		}
	case n.kind == kindText && !strings.ContainsAny(n.text, "\n\t\u0085\u2028") && rapid.Bool().Draw(t, "single"):
		b.WriteString(" '" + strings.ReplaceAll(n.text, "'", "''") + "'")
	default:
		b.WriteString(" " + string(n.json()))
		if rapid.Bool().Draw(t, "comment") {
			b.WriteString(" # comment")
		}
	}
}

func TestAValueIsTheSameInJSONAndInYAMLOfEveryStyle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := `{"root":` + trees(3).Draw(t, "tree") + `}`
		want, err := canon.JSON([]byte(text))
		require.NoError(t, err)
		same := func(n *node) {
			got, err := canon.JSON(n.json())
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
		fromJSON := read(t, "x.json", text)
		same(fromJSON)
		assert.Equal(t, text, string(fromJSON.json()), "members keep their order, and numbers their spelling")
		same(read(t, "flow.yaml", "# flow\n"+text))
		var b strings.Builder
		block(t, &b, fromJSON, "")
		same(read(t, "block.yaml", b.String()))
	})
}

func TestDepthAndSizeAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"flow.yaml":    "a: " + strings.Repeat("[", 100_000),
		"entries.yaml": strings.Repeat("- ", 100_000) + "a",
		"keys.yaml":    strings.Repeat("? ", 100_000) + "a",
		"anchors.yaml": strings.Repeat("&a\n", 100_000) + "a",
		"tags.yaml":    "[" + strings.Repeat("!a ", 100_000) + "a]",
		"deep.json":    strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"indent.yaml":  indented(300),
		"large.yaml":   "a: " + strings.Repeat("x", maxText),
		"aliases.yaml": "a: &a \"" + strings.Repeat("x", 1<<20) + "\"\nb: [" + strings.Repeat("*a,", 1000) + "]",
		"long.yaml":    strings.Repeat("- a\n", 30_000),
	} {
		p := &problems{}
		assert.Nil(t, readText(p, name, []byte(text)), name)
		require.Error(t, p.err(), name)
		assert.Regexp(t, "nested too deeply|too large|more than|at most", p.err().Error(), name)
	}
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestLargeFilesAreRead(t *testing.T) {
	var yaml, json strings.Builder
	json.WriteString("{\n")
	for i := range 20_000 {
		line := fmt.Sprintf(`"name%d": {"a": [1, "two"], "b": null}`, i)
		if i < 2_000 {
			yaml.WriteString(line + "\n")
		}
		json.WriteString(line + ",\n")
	}
	json.WriteString(`"last": 1}`)
	assert.Len(t, read(t, "x.yaml", yaml.String()).members, 2_000)
	last := read(t, "x.json", json.String()).member("last")
	assert.Equal(t, 20_002, last.line)
}

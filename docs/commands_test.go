package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/starter"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// commands are those of the program, by the names of the functions that make them.
var commands = map[string]starter.Command{
	"Dev": starter.Dev, "Demo": starter.Demo, "Worker": starter.Worker, "Plan": starter.Plan, "Start": starter.Start,
	"List": starter.List, "Status": starter.Status, "Approve": starter.Approve, "Reject": starter.Reject,
	"Resume": starter.Resume, "Abort": starter.Abort, "Resolve": starter.Resolve, "Receipt": starter.Receipt,
	"Doctor": starter.Doctor, "Version": starter.Version, "Example": starter.Example,
}

func TestTheCommandsAreThoseOfTheProgram(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "main.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var main, here []string
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if from, ok := s.X.(*ast.Ident); ok && from.Name == "starter" && s.Sel.Name != "Main" {
				main = append(main, s.Sel.Name)
			}
		}
		return true
	})
	for name := range commands {
		here = append(here, name)
	}
	assert.ElementsMatch(t, main, here, "add new commands to the map above, and to the tables")
}

// help is what the program prints with --help after the given arguments.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var all []starter.Command
	for _, command := range commands {
		all = append(all, command)
	}
	var out, err strings.Builder
	app := starter.New(nil, strings.NewReader(""), screen.Plainly(&out, 0), screen.Plainly(&err, 0), all...)
	require.Equal(t, 0, app.Run(t.Context(), append(args, "--help")), err.String())
	return out.String()
}

var (
	commandLine = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
	flagLine    = regexp.MustCompile(`(?m)^ +(?:(-\w), )?(--[a-z-]+)`)
)

// between is the part of a text after one line and before another.
func between(text, after, before string) string {
	_, text, _ = strings.Cut(text, after)
	text, _, _ = strings.Cut(text, before)
	return text
}

// listed are the commands that people see.
func listed(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range commandLine.FindAllStringSubmatch(between(help(t), "Available Commands:\n", "\n\n"), -1) {
		if m[1] != "help" {
			names = append(names, m[1])
		}
	}
	require.NotEmpty(t, names)
	return names
}

// flags are those of a command, long and short; without a command, those of every one.
func flags(t *testing.T, command ...string) (long, short []string) {
	t.Helper()
	for _, m := range flagLine.FindAllStringSubmatch(between(help(t, command...), "\nFlags:\n", "\n\n"), -1) {
		if m[2] == "--help" {
			continue
		}
		long = append(long, m[2])
		if m[1] != "" {
			short = append(short, m[1])
		}
	}
	return long, short
}

func TestEveryCommandIsDocumentedWithItsFlags(t *testing.T) {
	p := read(t, "operations.md")
	var documented []string
	for _, r := range p.table(t, "commands") {
		words := strings.Fields(r.code(t, 0))
		require.Equal(t, "mcpx", words[0])
		documented = append(documented, words[1])
		long, _ := flags(t, words[1])
		assert.ElementsMatch(t, long, codes(r.cell(2)), words[1])
	}
	assert.ElementsMatch(t, listed(t), documented)

	long, short := flags(t)
	var global []string
	for _, r := range p.table(t, "global flags") {
		for _, code := range codes(r.cell(0)) {
			global = append(global, strings.Fields(code)[0])
		}
	}
	assert.ElementsMatch(t, append(long, short...), global)
}

var (
	mention  = regexp.MustCompile("(?m)(?:^|[\\s`/(])mcpx ([a-z]+)")
	flagUsed = regexp.MustCompile(`(?:^|\s)(--?[a-z][a-z-]*)`)
)

// Wherever a page says what to type, there is such a command, with such flags.
func TestNoPageNamesACommandThatDoesNotExist(t *testing.T) {
	known := listed(t)
	globalLong, globalShort := flags(t)
	for _, p := range pages(t) {
		for _, m := range mention.FindAllStringSubmatch(p.text, -1) {
			assert.Contains(t, known, m[1], "%s: %q", p.name, m[0])
		}
		for _, b := range p.blocks() {
			for line := range strings.Lines(b.text) {
				m := mention.FindStringSubmatchIndex(line)
				if m == nil || !slices.Contains(known, line[m[2]:m[3]]) {
					continue
				}
				rest, _, _ := strings.Cut(line[m[1]:], "#")
				rest, _, _ = strings.Cut(rest, ">")
				long, short := flags(t, line[m[2]:m[3]])
				for _, used := range flagUsed.FindAllStringSubmatch(rest, -1) {
					assert.Contains(t, slices.Concat(long, short, globalLong, globalShort), used[1], "%s: %s", p.name, line)
				}
			}
		}
	}
}

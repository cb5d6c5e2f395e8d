package docs_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/view"
)

// constants are the values of a package's constants of a type.
func constants(t *testing.T, dir, typeName string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	require.NoError(t, err)
	var values []string
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typeName {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					values = append(values, text)
				}
			}
			return true
		})
	}
	require.NotEmpty(t, values, "%s.%s", dir, typeName)
	return values
}

// texts are those of a type's values.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// has checks that a word is among those that a page has in code spans.
func has(t *testing.T, words []string, word string) {
	t.Helper()
	assert.True(t, slices.Contains(words, word), "%q is not documented", word)
}

// yes is what a cell of a column of yes and nothing says.
func yes(t *testing.T, cell string) bool {
	t.Helper()
	require.Contains(t, []string{"", "yes"}, cell)
	return cell == "yes"
}

func TestTheStatesOfAStepAreDocumented(t *testing.T) {
	p := read(t, "states.md")
	rows := p.table(t, "step states")
	assert.Equal(t, texts(contract.StepStates()), column(t, rows, 0))
	for _, r := range rows {
		state := contract.StepState(r.code(t, 0))
		assert.Equal(t, state.Meaning(), r.cell(1), state)
		assert.Equal(t, state.InEffect(), yes(t, r.cell(2)), state)
		assert.Equal(t, state.NeedsHuman(), yes(t, r.cell(3)), state)
	}
	diagram := p.section(t, "## A step")
	diagram = diagram[:strings.Index(diagram, "<!--")]
	for _, state := range contract.StepStates() {
		assert.Contains(t, diagram, string(state))
	}
}

func TestTheTransitionsOfAStepAreDocumented(t *testing.T) {
	var documented, possible []string
	for _, r := range read(t, "states.md").table(t, "step transitions") {
		documented = append(documented, r.code(t, 0)+" → "+r.code(t, 1))
		assert.NotEmpty(t, r.cell(2))
	}
	for _, from := range contract.StepStates() {
		for _, to := range contract.StepStates() {
			if from.CanBecome(to) {
				possible = append(possible, string(from)+" → "+string(to))
			}
		}
	}
	assert.ElementsMatch(t, possible, documented)
}

func TestTheStatesOfATransactionAreDocumented(t *testing.T) {
	p := read(t, "states.md")
	rows := p.table(t, "transaction states")
	assert.Equal(t, texts(contract.TxStates()), column(t, rows, 0))
	waits := codes(p.section(t, "## When it waits for a human"))
	for _, r := range rows {
		state := contract.TxState(r.code(t, 0))
		assert.Equal(t, state.Meaning(), r.cell(1), state)
		status := "Running"
		switch {
		case state == contract.TxTerminated:
			status = "Terminated, TimedOut"
		case state.EffectsRemain():
			status = "Completed"
		case state.Closed():
			status = "Failed"
		}
		assert.Equal(t, status, r.cell(2), state)
		code := ""
		if state.Closed() || state.NeedsHuman() {
			code = strconv.Itoa(view.ExitCode(state))
		}
		assert.Equal(t, code, r.cell(3), state)
		assert.Equal(t, state.NeedsHuman(), slices.Contains(waits, string(state)), state)
	}
}

func TestTheExitCodesAreDocumented(t *testing.T) {
	documented := map[string]string{}
	for i, r := range read(t, "operations.md").table(t, "exit codes") {
		assert.Equal(t, strconv.Itoa(i), r.cell(0))
		for _, state := range codes(r.cell(2)) {
			documented[state] = r.cell(0)
		}
	}
	for _, state := range contract.TxStates() {
		if state.Closed() || state.NeedsHuman() {
			assert.Equal(t, strconv.Itoa(view.ExitCode(state)), documented[string(state)], state)
		}
		delete(documented, string(state))
	}
	assert.Empty(t, documented, "no such states")
}

func TestTheSignalsAreDocumented(t *testing.T) {
	p := read(t, "states.md")
	rows := p.table(t, "signals")
	var names []string
	for _, s := range contract.Signals {
		names = append(names, s.Name)
	}
	assert.Equal(t, names, column(t, rows, 0))
	for _, r := range rows {
		dec := json.NewDecoder(bytes.NewReader([]byte(r.code(t, 1))))
		dec.DisallowUnknownFields()
		var d contract.Decision
		require.NoError(t, dec.Decode(&d), r.code(t, 0))
		assert.NotEmpty(t, d.By)
	}
	waits := p.section(t, "## When it waits for a human")
	for _, name := range names {
		has(t, codes(waits), name)
		assert.Contains(t, read(t, "operations.md").text, "--name "+name+" --input", "Temporal's own CLI")
	}
	assert.ElementsMatch(t, members(reflect.TypeFor[contract.Decision]()), column(t, p.table(t, "decision"), 0))
	assert.Equal(t, texts(contract.Resolutions), column(t, p.table(t, "resolutions"), 0))
}

func TestTheWordsOfCallsAndLooksAreDocumented(t *testing.T) {
	p := read(t, "states.md")
	assert.Equal(t, constants(t, "contract", "OutcomeKind"), sorted(t, p, "outcomes", "OutcomeKind"))
	assert.Equal(t, constants(t, "contract", "Written"), sorted(t, p, "written", "Written"))
	assert.Equal(t, constants(t, "contract", "Verdict"), sorted(t, p, "verdicts", "Verdict"))
	said := p.section(t, "## Snapshots and receipts")
	for _, kind := range constants(t, "contract", "CallKind") {
		has(t, codes(said), kind)
	}
	tools := codes(read(t, "manifest.md").section(t, "## Tools"))
	for _, typeName := range []string{"Risk", "Proof"} {
		for _, word := range constants(t, "contract", typeName) {
			has(t, tools, word)
		}
	}
	twice := codes(read(t, "operations.md").section(t, "## The same thing twice"))
	for _, how := range constants(t, "sdk", "How") {
		has(t, twice, how)
	}
}

// sorted are the words of a table's first column in the order of the constants of a type.
func sorted(t *testing.T, p page, table, typeName string) []string {
	t.Helper()
	order := constants(t, "contract", typeName)
	words := column(t, p.table(t, table), 0)
	slices.SortFunc(words, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return words
}

// members are the names that a struct's fields have in JSON.
func members(of reflect.Type) []string {
	var names []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			names = append(names, members(field.Type)...)
			continue
		}
		names = append(names, name)
	}
	return names
}

func TestTheMembersOfASnapshotAreDocumented(t *testing.T) {
	documented := codes(read(t, "states.md").section(t, "## Snapshots and receipts"))
	for _, of := range []reflect.Type{
		reflect.TypeFor[contract.Receipt](), reflect.TypeFor[contract.StepSnapshot](), reflect.TypeFor[contract.Evidence](),
		reflect.TypeFor[contract.UndoPlan](), reflect.TypeFor[contract.Judged](),
	} {
		for _, name := range members(of) {
			has(t, documented, name)
		}
	}
}

func TestTheNamesForTemporalAreDocumented(t *testing.T) {
	p := read(t, "operations.md")
	for _, name := range []string{contract.SearchState, contract.SearchPlan, contract.SearchTools, contract.TaskQueue, contract.Namespace} {
		has(t, codes(p.text), name)
	}
	for _, option := range []string{
		"--type " + contract.WorkflowTransaction, "--task-queue " + contract.TaskQueue, "--type " + contract.QuerySnapshot,
		"TEMPORAL_NAMESPACE=" + contract.Namespace,
	} {
		assert.Contains(t, p.text, option)
	}
	states := codes(read(t, "states.md").text)
	has(t, states, contract.ErrorStart)
	has(t, states, contract.ReceiptFormat)
}

func TestTheRulesOfTheLintAreDocumentedInTheirOwnWords(t *testing.T) {
	rows := read(t, "manifest.md").table(t, "rules")
	assert.ElementsMatch(t, constants(t, "manifest", "Rule"), column(t, rows, 0))
	var source strings.Builder
	files, err := filepath.Glob(filepath.Join("..", "manifest", "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			source.Write(text)
		}
	}
	for _, r := range rows {
		assert.Contains(t, source.String(), r.cell(1), r.cell(0))
	}
}

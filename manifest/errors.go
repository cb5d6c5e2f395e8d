package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sentinels for what callers branch on.
var (
	// ErrNoManifest: there is no manifest where one was looked for.
	ErrNoManifest = errors.New("no manifest")
	// ErrUnknownPlan: the manifest has no plan of that name.
	ErrUnknownPlan = errors.New("unknown plan")
	// ErrUnknownServer: the manifest has no server of that name.
	ErrUnknownServer = errors.New("unknown server")
	// ErrInput: the input of a plan does not satisfy the plan's schema, lacks a logical key, or is too large.
	ErrInput = errors.New("input not accepted")
	// ErrKey: a key that a caller chose for an intent cannot be one.
	ErrKey = errors.New("key not accepted")
)

// Error is one problem of a manifest, with its place.
type Error struct {
	// File as it was named; Line and Column count from 1, and are 0 where the problem has no place in the text.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Field is the path of the field: tools["routing/create_route"].inspect.tool. Empty for the whole file.
	Field string `json:"field,omitempty"`
	// Problem says what is wrong, Want what would be right, if that is known.
	Problem string `json:"problem"`
	Want    string `json:"want,omitempty"`
}

// Error is the problem in one line: mcpx.yaml:12:5: tools["a/b"].retires: unknown field (did you mean "retries"?).
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	if e.Want != "" {
		b.WriteString(" (" + e.Want + ")")
	}
	return b.String()
}

// Errors are all problems of a manifest, in the order of their places. They unwrap to the single ones, so errors.As with
// an Error finds the first.
type Errors []Error

// Error lists the problems, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, problem := range e {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single problems.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, problem := range e {
		all[i] = problem
	}
	return all
}

// maxProblems bounds how many problems are collected; a file with more is not a manifest at all.
const maxProblems = 200

// problems collects what is wrong, and what the lint has to say on the way.
type problems struct {
	errors   Errors
	warnings []Warning
}

func (p *problems) add(at place, field, want, format string, args ...any) {
	if len(p.errors) < maxProblems {
		p.errors = append(p.errors, Error{
			File: at.file, Line: at.line, Column: at.column,
			Field: field, Want: want, Problem: fmt.Sprintf(format, args...),
		})
	}
}

func (p *problems) warn(at place, field string, rule Rule, format string, args ...any) {
	p.warnings = append(p.warnings, Warning{
		File: at.file, Line: at.line, Column: at.column,
		Place: field, Rule: rule, Text: fmt.Sprintf(format, args...),
	})
}

// err is nil, or every problem in the order of places, each once. The order of files is that in which they were first
// met.
func (p *problems) err() error {
	if len(p.errors) == 0 {
		return nil
	}
	order := map[string]int{}
	for _, e := range p.errors {
		if _, met := order[e.File]; !met {
			order[e.File] = len(order)
		}
	}
	slices.SortStableFunc(p.errors, func(a, b Error) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	p.errors = slices.Compact(p.errors)
	return p.errors
}

// place is where in which file something stands.
type place struct {
	file         string
	line, column int
}

// plural is "1 step", "2 steps".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

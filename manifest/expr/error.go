package expr

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// Error says why a condition does not compile.
type Error struct {
	Kind     Kind
	Source   string
	Problems []Problem
}

// Problem is one thing that is wrong with a condition.
type Problem struct {
	// Column is the character of the source at which the problem is, counting from 1 over the whole text; 0 where
	// it concerns all of it.
	Column int
	Text   string
	// Want says what would be right, if that is known.
	Want string
}

// Error names every problem with its place.
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return fmt.Sprintf("%s condition: %s", e.Kind, strings.Join(texts, "; "))
}

// String is the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Column > 0 {
		fmt.Fprintf(&b, "character %d: ", p.Column)
	}
	b.WriteString(p.Text)
	if p.Want != "" {
		fmt.Fprintf(&b, " (%s)", p.Want)
	}
	return b.String()
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noOverload = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '([^']*)'`)
	tokenError = regexp.MustCompile(`^Syntax error: (.*)$`)
)

// problemsOf turns what CEL found into problems.
func problemsOf(issues *cel.Issues, source string) []Problem {
	var problems []Problem
	for _, e := range issues.Errors() {
		p := Problem{Text: strings.TrimSpace(e.Message)}
		if e.Location.Line() > 0 {
			p.Column = columnOf(source, e.Location.Line(), e.Location.Column())
		}
		if m := undeclared.FindStringSubmatch(p.Text); m != nil {
			p.Text, p.Want = fmt.Sprintf("there is no function %q", m[1]), ""
		} else if m := noOverload.FindStringSubmatch(p.Text); m != nil {
			name := strings.Trim(m[1], "_@")
			p.Text = fmt.Sprintf("%s cannot be applied to %s", name, m[2])
			switch name {
			case "==", "!=", "<", "<=", ">", ">=":
				p.Want = "compare values of the same type"
			case "&&", "||", "!":
				p.Want = "join conditions only"
			}
		} else if m := tokenError.FindStringSubmatch(p.Text); m != nil {
			what, _, _ := strings.Cut(m[1], " expecting ")
			if strings.Contains(what, "'<EOF>'") {
				what = "it ends too soon"
			}
			p.Text = "cannot be read: " + what
		}
		problems = append(problems, p)
	}
	return problems
}

// columnOf turns a line (from 1) and a column in it (from 0) into a character of the whole source (from 1).
func columnOf(source string, line, column int) int {
	at := column + 1
	for text := range strings.Lines(source) {
		if line--; line == 0 {
			break
		}
		at += len([]rune(text))
	}
	return at
}

// columnAt is the place of an expression, from 1; 0 if it has none.
func columnAt(tree *ast.AST, id int64) int {
	span, ok := tree.SourceInfo().GetOffsetRange(id)
	if !ok {
		return 0
	}
	return int(span.Start) + 1
}

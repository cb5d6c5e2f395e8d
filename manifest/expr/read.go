package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// reading is what a look at the syntax tree of a condition finds: the values that it mentions, and problems of which
// the type check does not know.
type reading struct {
	kind     Kind
	source   []rune
	tree     *ast.AST
	paths    map[string]contract.Path
	problems []Problem
}

func read(kind Kind, source string, tree *ast.AST) *reading {
	r := &reading{kind: kind, source: []rune(source), tree: tree, paths: map[string]contract.Path{}}
	r.walk(tree.Expr(), nil)
	return r
}

func (r *reading) fail(id int64, want, format string, args ...any) {
	r.problems = append(r.problems, Problem{Column: columnAt(r.tree, id), Text: fmt.Sprintf(format, args...), Want: want})
}

// mentions lists the paths, in the order of their texts.
func (r *reading) mentions() []contract.Path {
	var paths []contract.Path
	for _, text := range slices.Sorted(maps.Keys(r.paths)) {
		paths = append(paths, r.paths[text])
	}
	return paths
}

// walk visits an expression. bound are the variables of the comprehensions around it.
func (r *reading) walk(e ast.Expr, bound []string) {
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		r.path(e, bound)
	case ast.LiteralKind:
		r.literal(e)
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() == operators.Index {
			r.path(e, bound)
			return
		}
		r.equality(call)
		if call.IsMemberFunction() {
			r.walk(call.Target(), bound)
		}
		for _, arg := range call.Args() {
			r.walk(arg, bound)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			r.walk(item, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key(), bound)
			r.walk(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.walk(field.AsStructField().Value(), bound)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		r.walk(c.IterRange(), bound)
		r.walk(c.AccuInit(), bound)
		inside := append(slices.Clone(bound), c.AccuVar(), c.IterVar())
		if c.HasIterVar2() {
			inside = append(inside, c.IterVar2())
		}
		r.walk(c.LoopCondition(), inside)
		r.walk(c.LoopStep(), inside)
		r.walk(c.Result(), inside)
	}
}

// path reads a chain of members and indexes down to the variable that it begins with.
func (r *reading) path(e ast.Expr, bound []string) {
	var elems []contract.Elem
	at := e.ID()
	for {
		switch e.Kind() {
		case ast.SelectKind:
			elems = append(elems, contract.Elem{Member: e.AsSelect().FieldName()})
			at, e = e.ID(), e.AsSelect().Operand()
			continue
		case ast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.Index && len(call.Args()) == 2 {
				if elem, ok := constantElem(call.Args()[1]); ok {
					elems = append(elems, elem)
				} else {
					elems = nil // what lies below an unknown index is not named
					r.walk(call.Args()[1], bound)
				}
				at, e = e.ID(), call.Args()[0]
				continue
			}
			r.walk(e, bound)
		case ast.IdentKind:
			slices.Reverse(elems)
			r.variable(e, at, elems, bound)
		default:
			r.walk(e, bound)
		}
		return
	}
}

func constantElem(e ast.Expr) (contract.Elem, bool) {
	if e.Kind() != ast.LiteralKind {
		return contract.Elem{}, false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return contract.Elem{Member: string(v)}, true
	case types.Int:
		return contract.Elem{Index: int(v), IsItem: true}, v >= 0 && v < 1<<31
	}
	return contract.Elem{}, false
}

// variable records the mention of a variable with the path into it. member is the expression of its first member.
func (r *reading) variable(e ast.Expr, member int64, elems []contract.Elem, bound []string) {
	name := strings.TrimPrefix(e.AsIdent(), ".")
	if slices.Contains(bound, name) {
		return
	}
	known := variables[r.kind]
	if !slices.Contains(known, name) {
		if len(elems) == 0 && isTypeName(name) {
			return
		}
		want := nearest.Hint(name, known)
		if want == "" {
			want = "there are " + strings.Join(known, ", ")
		}
		if slices.Contains(variables[Present], name) {
			r.fail(e.ID(), "there are "+strings.Join(known, ", "), "a %s condition knows no %s", r.kind, name)
			return
		}
		r.fail(e.ID(), want, "unknown variable %q", name)
		return
	}
	if open := fields[name]; open != nil && len(elems) > 0 {
		if first := elems[0]; first.IsItem || !slices.Contains(open, first.Member) {
			want := nearest.Hint(first.Member, open)
			if want == "" {
				want = "there is " + strings.Join(open, ", ")
			}
			r.fail(member, want, "%s has no member %q", name, contract.ElemsString(elems[:1]))
			return
		}
	}
	p := contract.Path{Root: name, Elems: elems}
	r.paths[p.String()] = p
}

func isTypeName(name string) bool {
	switch name {
	case "bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint":
		return true
	}
	return false
}

// literal refuses decimals that CEL would round, or compare with rounded integers.
func (r *reading) literal(e ast.Expr) {
	d, ok := e.AsLiteral().(types.Double)
	if !ok {
		return
	}
	span, found := r.tree.SourceInfo().GetOffsetRange(e.ID())
	if !found || int(span.Stop) > len(r.source) || span.Start > span.Stop {
		return
	}
	text := strings.TrimSpace(string(r.source[span.Start:span.Stop]))
	const want = `write number("…") around it`
	if !comparableLiteral(float64(d)) {
		r.fail(e.ID(), "write it without a point or exponent, or "+want, "the number %s would be compared with rounded integers", text)
		return
	}
	if canonical, err := canon.JSON([]byte(jsonNumber(text))); err == nil && !faithful(string(canonical), float64(d)) {
		r.fail(e.ID(), want, "the number %s would be rounded to %v", text, float64(d))
	}
}

// jsonNumber writes a CEL double as JSON does: .5 as 0.5.
func jsonNumber(text string) string {
	rest, negative := strings.CutPrefix(text, "-")
	if strings.HasPrefix(rest, ".") {
		rest = "0" + rest
	}
	if whole, fraction, found := strings.Cut(rest, "."); found {
		whole = strings.TrimLeft(whole, "0")
		if whole == "" {
			whole = "0"
		}
		rest = whole + "." + fraction
	}
	if negative {
		return "-" + rest
	}
	return rest
}

// equality refuses comparisons of error.code, which is always text, with something else.
func (r *reading) equality(call ast.CallExpr) {
	if name := call.FunctionName(); name != operators.Equals && name != operators.NotEquals || len(call.Args()) != 2 {
		return
	}
	for i, side := range call.Args() {
		other := call.Args()[1-i]
		if side.Kind() != ast.SelectKind || other.Kind() != ast.LiteralKind {
			continue
		}
		selected := side.AsSelect()
		if selected.Operand().Kind() != ast.IdentKind || selected.Operand().AsIdent() != varError {
			continue
		}
		switch v := other.AsLiteral().(type) {
		case types.Int, types.Uint:
			r.fail(other.ID(), fmt.Sprintf(`write "%v"`, v.Value()), "error.%s is text, and never equal to the number %v",
				selected.FieldName(), v.Value())
		}
	}
}

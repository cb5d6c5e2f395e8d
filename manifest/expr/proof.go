package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/mcpx-go/mcpx/contract"
)

// proves tells what the truth of an expression proves of whose effect was seen.
//
// A conjunction proves what either side proves. A disjunction, or a choice, proves something only if both sides do,
// and then what both do together: the side that compares with result cannot be true while there is no result.
// Everything else proves by relating a part of the response to tx.id or to a part of result.
func (r *reading) proves(e ast.Expr) []contract.Proof {
	if e.Kind() == ast.ComprehensionKind {
		if !r.existential(e) {
			return nil
		}
		return r.relates(e)
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return union(r.proves(args[0]), r.proves(args[1]))
	case operators.LogicalOr:
		return both(r.proves(args[0]), r.proves(args[1]))
	case operators.Conditional:
		return both(r.proves(args[1]), r.proves(args[2]))
	case operators.LogicalNot, operators.NotEquals:
		return nil
	}
	return r.relates(e)
}

// existential tells whether a comprehension is true only if there is an item that satisfies its condition: all(…) is
// true of an empty list.
func (r *reading) existential(e ast.Expr) bool {
	macro, ok := r.tree.SourceInfo().GetMacroCall(e.ID())
	if !ok || macro.Kind() != ast.CallKind {
		return false
	}
	call := macro.AsCall()
	if name := call.FunctionName(); name != operators.Exists && name != operators.ExistsOne {
		return false
	}
	return len(call.Args()) > 0 && !r.negates(call.Args()[len(call.Args())-1])
}

// negates tells whether an expression holds a negation or an alternative anywhere.
func (r *reading) negates(e ast.Expr) bool {
	found := false
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(inner ast.Expr) {
		if inner.Kind() != ast.CallKind {
			return
		}
		switch inner.AsCall().FunctionName() {
		case operators.LogicalNot, operators.NotEquals, operators.LogicalOr, operators.Conditional:
			found = true
		}
	}))
	return found
}

// relates tells which proofs an expression offers by mentioning them together with the response.
func (r *reading) relates(e ast.Expr) []contract.Proof {
	inner := &reading{kind: r.kind, source: r.source, tree: r.tree, paths: map[string]contract.Path{}}
	inner.walk(e, nil)
	var response, tx, result bool
	for _, p := range inner.paths {
		switch {
		case p.Root == varResponse:
			response = true
		case p.Root == varTx && len(p.Elems) > 0:
			tx = true
		case p.Root == varResult && len(p.Elems) > 0:
			result = true
		}
	}
	var proofs []contract.Proof
	if response && tx {
		proofs = append(proofs, contract.ProofTx)
	}
	if response && result {
		proofs = append(proofs, contract.ProofResult)
	}
	return proofs
}

func both(a, b []contract.Proof) []contract.Proof {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	return union(a, b)
}

// union is a and b in the order in which the proofs are declared.
func union(a, b []contract.Proof) []contract.Proof {
	var proofs []contract.Proof
	for _, p := range []contract.Proof{contract.ProofTx, contract.ProofResult} {
		if slices.Contains(a, p) || slices.Contains(b, p) {
			proofs = append(proofs, p)
		}
	}
	return proofs
}

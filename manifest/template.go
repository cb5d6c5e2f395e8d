package manifest

import (
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// templateRef is a reference of a template, with its place in the file.
type templateRef struct {
	contract.Path
	node  *node
	field string
}

// The roots that templates may refer to, by place.
var (
	rootsOfArgs   = []string{"input", "tx", "step", "steps"}
	rootsOfUndo   = []string{"args", "result", "tx", "step"}
	rootsOfResult = []string{"response", "args", "tx"}
)

// fixedMembers are the members of the roots that are not open.
var fixedMembers = map[string][]string{
	"tx":   {"id", "plan", "workflow"},
	"step": {"id", "attempt"},
}

// args reads a template of arguments: an object, or one ${path} to an object.
func (b *builder) args(o object, name string, roots []string) (contract.Template, []templateRef) {
	n := o.get(name)
	if n == nil {
		return nil, nil
	}
	if whole := n.kind == kindText && strings.HasPrefix(n.text, "${"); n.kind != kindObject && !whole {
		o.wrong(name, "write an object with the arguments")
		return nil, nil
	}
	return b.template(n, o.in(name), roots)
}

// template reads a template, and checks the roots of its references.
func (b *builder) template(n *node, field string, roots []string) (contract.Template, []templateRef) {
	var refs []templateRef
	before := len(b.errors)
	n.texts(field, func(text *node, field string) {
		if strings.Contains(text.text, "${secret:") {
			b.add(text.place, field, "secrets can be named in the headers and env of a server",
				"references to secrets are not supported in arguments yet")
			return
		}
		found, err := contract.Template(quote(text.text)).Refs()
		if err != nil {
			b.add(text.place, field, "", "%s", strings.TrimPrefix(err.Error(), "/: "))
			return
		}
		for _, ref := range found {
			if b.root(ref.Path, text, field, roots) {
				refs = append(refs, templateRef{ref.Path, text, field})
			}
		}
	})
	if len(b.errors) > before {
		return nil, refs
	}
	return contract.Template(n.json()), refs
}

// root checks what a reference begins with.
func (b *builder) root(p contract.Path, at *node, field string, roots []string) bool {
	if !slices.Contains(roots, p.Root) {
		want := nearest.Hint(p.Root, roots)
		if want == "" {
			want = "there are " + strings.Join(roots, ", ")
		}
		b.add(at.place, field, want, "${%s}: nothing is called %q here", p, p.Root)
		return false
	}
	members := fixedMembers[p.Root]
	if p.Root == "tx" && slices.Contains(roots, "response") {
		members = members[:1] // the activity that looks knows no more of the transaction
	}
	if members == nil {
		return true
	}
	if len(p.Elems) == 0 {
		b.add(at.place, field, "there are "+p.Root+"."+strings.Join(members, ", "+p.Root+"."), "${%s}: say which member is meant", p)
		return false
	}
	if first := p.Elems[0]; first.IsItem || !slices.Contains(members, first.Member) {
		want := nearest.Hint(first.Member, members)
		if want == "" {
			want = "there are " + strings.Join(members, ", ")
		}
		b.add(at.place, field, want, "${%s}: %s has no member %q", p, p.Root, contract.ElemsString(p.Elems[:1]))
		return false
	}
	if len(p.Elems) > 1 {
		b.add(at.place, field, "", "${%s}: %s.%s has no members", p, p.Root, p.Elems[0].Member)
		return false
	}
	return true
}

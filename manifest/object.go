package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// object reads the members of one object of the manifest. What is missing takes the given default; what is wrong
// becomes a problem, and takes it too.
type object struct {
	*problems
	node  *node
	field string
}

// object opens a value that must be an object with no members but the known ones. A missing or null value is an empty
// object where empty is allowed.
func (p *problems) object(n *node, field string, known ...string) (object, bool) {
	if n.kind != kindObject {
		p.add(n.place, field, "it has "+strings.Join(known, ", "), "is %s, not an object", n.describe())
		return object{}, false
	}
	o := object{problems: p, node: n, field: field}
	for _, m := range n.members {
		if !slices.Contains(known, m.name) {
			want := nearest.Hint(m.name, known)
			if want == "" {
				want = "there are " + strings.Join(known, ", ")
			}
			p.add(m.place, joined(field, m.name), want, "unknown field %q", m.name)
		}
	}
	return o, true
}

// in is the field of a member, under the name that the file has for it.
func (o object) in(name string) string {
	if m := o.node.member(name); m != nil {
		name = m.title()
	}
	return joined(o.field, name)
}

func (o object) get(name string) *node { return o.node.get(name) }

func (o object) has(name string) bool { return o.get(name) != nil }

// wrong reports a member of the wrong kind.
func (o object) wrong(name, want string) {
	n := o.get(name)
	o.add(n.place, o.in(name), want, "is %s", n.describe())
}

// text reads a text that is not empty.
func (o object) text(name, example string) string {
	n := o.get(name)
	switch {
	case n == nil:
		return ""
	case n.kind != kindText:
		o.wrong(name, "write a text such as "+example)
		return ""
	case n.text == "":
		o.add(n.place, o.in(name), "write a text such as "+example+", or remove the field", "is empty")
	}
	return n.text
}

// required reads a text that must be there.
func (o object) required(name, example string) string {
	if !o.has(name) {
		o.add(o.node.place, o.field, fmt.Sprintf("such as %s: %s", name, example), "the field %q is missing", name)
		return ""
	}
	return o.text(name, example)
}

// choice reads one of several words.
func (o object) choice(name, fallback string, words ...string) string {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	if n.kind == kindText && slices.Contains(words, n.text) {
		return n.text
	}
	want := ""
	if n.kind == kindText {
		want = nearest.Hint(n.text, words)
	}
	if want == "" {
		want = "write " + strings.Join(words, ", ")
		if i := strings.LastIndex(want, ", "); i >= 0 {
			want = want[:i] + " or " + want[i+2:]
		}
	}
	o.wrong(name, want)
	return fallback
}

// flag reads a boolean.
func (o object) flag(name string) bool {
	n := o.get(name)
	if n == nil {
		return false
	}
	if n.kind != kindBool {
		o.wrong(name, "write true or false")
	}
	return n.text == "true"
}

// count reads an integer from least to most.
func (o object) count(name string, fallback, least, most int) int {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	if n.kind == kindNumber {
		if i, err := strconv.Atoi(n.text); err == nil && i >= least && i <= most {
			return i
		}
	}
	o.wrong(name, fmt.Sprintf("write an integer from %d to %d", least, most))
	return fallback
}

// The bounds of durations. Nothing that MCPx waits for takes longer.
const (
	maxTimeout = 24 * time.Hour
	maxTime    = 10 * 365 * 24 * time.Hour
)

// duration reads a duration above zero and up to most.
func (o object) duration(name string, fallback contract.Duration, most time.Duration) contract.Duration {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	const example = "write a number with a unit, such as 500ms, 15s, 10m or 168h"
	if n.kind != kindText {
		o.wrong(name, example)
		return fallback
	}
	d, err := time.ParseDuration(n.text)
	switch {
	case err != nil && strings.HasSuffix(n.text, "d"):
		o.wrong(name, "days have no unit: 7 days are 168h")
	case err != nil:
		o.wrong(name, example)
	case d <= 0:
		o.wrong(name, "write a duration above zero")
	case d > most:
		o.wrong(name, fmt.Sprintf("at most %gh", most.Hours()))
	default:
		return contract.Duration(d)
	}
	return fallback
}

// list reads a list of texts, each once and none empty. A single text stands for a list of one.
func (o object) list(name, example string) []*node {
	n := o.get(name)
	if n == nil {
		return nil
	}
	items := n.items
	if n.kind == kindText {
		items = []*node{n}
	} else if n.kind != kindList {
		o.wrong(name, "write a list such as "+example)
		return nil
	}
	var out []*node
	seen := map[string]bool{}
	for i, item := range items {
		field := indexed(o.in(name), i)
		switch {
		case item.kind != kindText:
			o.add(item.place, field, "write a list of texts such as "+example, "is %s", item.describe())
		case item.text == "":
			o.add(item.place, field, "", "is empty")
		case seen[item.text]:
			o.add(item.place, field, "keep one of them", "%q stands twice in the list", item.text)
		default:
			seen[item.text] = true
			out = append(out, item)
		}
	}
	return out
}

// words are the texts of nodes; nil for none.
func words(nodes []*node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.text)
	}
	return out
}

// names reads the members of an object whose names are free, such as servers. Null stands for none.
func (o object) names(name string) []member {
	n := o.get(name)
	switch {
	case n.isNull():
		return nil
	case n.kind != kindObject:
		o.wrong(name, "write an object, with a name for each")
		return nil
	}
	return n.members
}

package manifest

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/expr"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// toolName is generous: owners name their tools as they like.
var toolName = regexp.MustCompile(`^[^\s\x00-\x1f\x7f]{1,128}$`)

var toolFields = []string{
	"risk", "key", "volatile", "sensitive", "timeout", "retries", "settle", "ttl", "refuse", "ours",
	"inspect", "compensate", "invalidates",
}

// tool reads one contract. The conditions and templates in it are checked here, what it says of other tools later.
func (b *builder) tool(m member) (contract.Tool, bool) {
	field := joined("tools", m.title())
	before := len(b.errors)
	server, name, ok := b.toolRef(m.place, field, m.name, "")
	if !ok {
		return contract.Tool{}, false
	}
	value := m.value
	if value.kind == kindNull {
		value = &node{place: m.place, kind: kindObject}
	}
	o, ok := b.object(value, field, toolFields...)
	if !ok {
		return contract.Tool{}, false
	}
	t := contract.Tool{
		Server: server, Name: name,
		Risk: contract.Risk(o.choice("risk", string(contract.RiskCritical),
			string(contract.RiskReadOnly), string(contract.RiskIdempotent), string(contract.RiskCritical))),
		Timeout:       o.duration("timeout", b.m.Defaults.Timeout, maxTimeout),
		Retries:       o.count("retries", b.m.Defaults.Retries, 0, maxRetries),
		TTL:           o.duration("ttl", b.m.Defaults.TTL, maxTime),
		TrustRefusals: b.m.Servers[server].TrustRefusals,
	}
	t.Settle = o.duration("settle", t.Timeout, maxTimeout)
	t.Key, t.KeyAll = b.key(o)
	t.Volatile = b.paths(o, "volatile", "[description]")
	t.Sensitive = b.paths(o, "sensitive", "[token]")
	for _, path := range t.Volatile {
		if slices.Contains(t.Key, path) {
			o.wrong("volatile", "what identifies an intent cannot differ within it: remove it from key or from volatile")
		}
	}
	t.Refuse = b.condition(o, "refuse", expr.Refuse)
	if o.has("ours") {
		t.OursByKey = o.choice("ours", "", "key") == "key"
		if t.OursByKey && len(t.Key) == 0 && !t.KeyAll {
			o.wrong("ours", "declare the key")
		}
	}
	if o.has("inspect") {
		t.Inspect = b.inspect(o, t)
	}
	if o.has("compensate") {
		t.Compensate = b.compensate(o, t)
	}
	for _, n := range o.list("invalidates", "[delete_route]") {
		of, tool, ok := b.toolRef(n.place, o.in("invalidates"), n.text, server)
		if ok && of != server {
			b.add(n.place, o.in("invalidates"), "", "%q belongs to another server: a receipt ends by calls of its own server", n.text)
		}
		t.Invalidates = append(t.Invalidates, tool)
	}
	b.tools[t.Ref()] = &toolPlace{place: m.place, field: field, node: value}
	return t, len(b.errors) == before
}

// toolRef reads "server/tool", or "tool" of the given server.
func (b *builder) toolRef(at place, field, ref, server string) (of, tool string, ok bool) {
	prefix, rest, qualified := strings.Cut(ref, "/")
	switch {
	case !qualified && server == "":
		b.add(at, field, "such as routing/create_route", "%q is not of the form server/tool", ref)
		return "", "", false
	case !qualified:
		prefix, rest = server, ref
	case !slices.Contains(b.servers, prefix):
		want := nearest.Hint(prefix, b.servers)
		if want == "" {
			want = "declare it under servers"
		}
		b.add(at, field, want, "there is no server %q", prefix)
		return "", "", false
	}
	if !toolName.MatchString(rest) {
		b.add(at, field, "such as create_route", "%q cannot name a tool", rest)
		return "", "", false
	}
	return prefix, rest, true
}

// key reads logical keys: a list of argument paths, or all.
func (b *builder) key(o object) (keys []string, all bool) {
	n := o.get("key")
	if n == nil {
		return nil, false
	}
	if n.kind == kindText && n.text == "all" {
		return nil, true
	}
	if n.kind != kindList {
		o.wrong("key", "write a list such as [workspace, name], or all")
		return nil, false
	}
	keys = words(o.list("key", "[workspace, name]"))
	if len(n.items) == 0 {
		o.wrong("key", "name at least one argument, or write all, or remove the field")
	}
	return keys, false
}

// paths reads a list of paths into arguments or results.
func (b *builder) paths(o object, name, example string) []string {
	nodes := o.list(name, example)
	for _, n := range nodes {
		if _, err := contract.ParseElems(n.text); err != nil {
			b.add(n.place, o.in(name), `such as token, order.items[0] or ["any name"]`, "%q is no path", n.text)
		}
	}
	return words(nodes)
}

// condition reads a CEL condition, and reports what is wrong with it at its place in the file.
func (b *builder) condition(o object, name string, kind expr.Kind) string {
	n := o.get(name)
	if n == nil {
		return ""
	}
	if n.kind == kindBool { // true and false are conditions, too
		return n.text
	}
	source := o.text(name, "response.owner == tx.id")
	if source == "" {
		return ""
	}
	_, err := expr.Cached(kind, source)
	var problem *expr.Error
	switch {
	case errors.As(err, &problem):
		for _, p := range problem.Problems {
			at := n.place
			if p.Column > 0 && n.textColumn > 0 {
				at.column = n.textColumn + p.Column - 1
				p.Column = 0
			}
			text := p.Text
			if p.Column > 0 {
				text = expr.Problem{Column: p.Column, Text: p.Text}.String()
			}
			b.add(at, o.in(name), p.Want, "%s", text)
		}
	case err != nil:
		b.add(n.place, o.in(name), "", "%v", err)
	}
	return source
}

func (b *builder) inspect(parent object, t contract.Tool) *contract.Inspect {
	o, ok := b.object(parent.get("inspect"), parent.in("inspect"),
		"tool", "args", "present", "absent", "result", "before", "timeout")
	if !ok {
		return nil
	}
	in := &contract.Inspect{
		Server:  t.Server,
		Present: b.condition(o, "present", expr.Present),
		Absent:  b.condition(o, "absent", expr.Absent),
		Before:  o.flag("before"),
		Timeout: o.duration("timeout", b.m.Defaults.Timeout, maxTimeout),
	}
	if ref := o.required("tool", "get_route"); ref != "" {
		in.Server, in.Tool, _ = b.toolRef(o.get("tool").place, o.in("tool"), ref, t.Server)
	}
	if in.Present == "" && in.Absent == "" && !o.has("present") && !o.has("absent") {
		b.add(o.node.place, o.field, "such as present: response.owner == tx.id, absent: error.code == \"NOT_FOUND\"",
			"an inspector needs the conditions present and absent")
	}
	in.Args, _ = b.args(o, "args", rootsOfUndo)
	if n := o.get("result"); n != nil {
		in.Result, _ = b.template(n, o.in("result"), rootsOfResult)
	}
	if c, err := expr.Cached(expr.Present, in.Present); err == nil {
		in.Proves = c.Proves()
	}
	return in
}

func (b *builder) compensate(parent object, t contract.Tool) *contract.Compensate {
	o, ok := b.object(parent.get("compensate"), parent.in("compensate"),
		"tool", "args", "retries", "timeout", "settle", "within")
	if !ok {
		return nil
	}
	c := &contract.Compensate{
		Server:  t.Server,
		Retries: o.count("retries", b.m.Defaults.Retries, 0, maxRetries),
		Timeout: o.duration("timeout", t.Timeout, maxTimeout),
		Settle:  o.duration("settle", t.Settle, maxTimeout),
		Within:  o.duration("within", 0, maxTime),
	}
	if ref := o.required("tool", "delete_route"); ref != "" {
		c.Server, c.Tool, _ = b.toolRef(o.get("tool").place, o.in("tool"), ref, t.Server)
	}
	c.Args, _ = b.args(o, "args", rootsOfUndo)
	return c
}

// checkTools checks what contracts say of each other, when all of them are known.
func (b *builder) checkTools() {
	for _, m := range b.doc.tools {
		t, ok := b.m.Tools[m.name]
		if !ok {
			continue
		}
		at := b.tools[m.name]
		o := object{problems: b.problems, node: at.node, field: at.field}
		if t.Inspect != nil {
			inspector := t.Inspect.Server + "/" + t.Inspect.Tool
			n := o.get("inspect").get("tool")
			if n == nil {
				n = o.get("inspect")
			}
			if known, listed := b.m.Tools[inspector]; listed && known.Risk != contract.RiskReadOnly {
				b.add(n.place, joined(o.in("inspect"), "tool"), "an inspector only reads: declare risk: read_only for it, or name another tool",
					"%s is %s", inspector, known.Risk)
			}
		}
		if t.Risk == contract.RiskReadOnly && t.Compensate != nil {
			b.add(o.get("compensate").place, o.in("compensate"), "remove it, or correct the risk", "a read_only tool has nothing to undo")
		}
	}
}

package manifest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/expr"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// An AgentX manifest is read by writing it anew in our own terms, node by node, with the places of the original. Its
// fields may stand beside ours: ours are taken as they are.

// agentXRisks are AgentX's words for a tool's risk.
var agentXRisks = map[string]contract.Risk{
	"READ_ONLY":         contract.RiskReadOnly,
	"IDEMPOTENT":        contract.RiskIdempotent,
	"MUTATING_SAFE":     contract.RiskCritical,
	"MUTATING_CRITICAL": contract.RiskCritical,
}

var (
	agentXTop      = []string{"version", "serverName", "ledgerPath", "defaultPolicy", "tools"}
	agentXDefaults = []string{"timeoutMs", "maxRetries", "ttlSeconds"}
	agentXTool     = []string{
		"toolName", "riskLevel", "logicalKeys", "timeoutMs", "maxRetries", "ttlSeconds", "sensitiveFields", "verifier", "compensator",
	}
	agentXVerifier    = []string{"toolName", "argumentMapping", "matchKeyPath", "expectedValue"}
	agentXCompensator = []string{"toolName", "argumentMapping"}

	ownInspect    = []string{"tool", "args", "present", "absent", "result", "before", "timeout"}
	ownCompensate = []string{"tool", "args", "retries", "timeout", "settle", "within"}
)

// The constants that AgentX uses for tools, whatever its defaultPolicy says.
const (
	agentXTimeoutMs = 15000
	agentXAttempts  = 2
	agentXTTL       = 604800
	agentXServer    = "agentx"
)

// isAgentX recognises an AgentX manifest by its shape: riskLevel in a tool, or one of its own members at the top, and a
// version that is not ours.
func isAgentX(root *node) bool {
	if v := root.get("version"); v != nil && v.kind == kindNumber {
		return false
	}
	for _, name := range []string{"serverName", "ledgerPath", "defaultPolicy"} {
		if root.get(name) != nil {
			return true
		}
	}
	tools := root.get("tools")
	return tools != nil && slices.ContainsFunc(tools.members, func(m member) bool { return m.value.get("riskLevel") != nil })
}

// translate writes an AgentX manifest in our terms. What AgentX itself accepts is accepted.
func (l *loader) translate(doc *document, root *node) *node {
	root = l.strangers(root, "", slices.Concat(agentXTop, topFields))
	server := l.agentXServer(root)
	doc.standIn = server
	out := &node{place: root.place, kind: kindObject}
	out.put(place{}, "version", numberNode(root.place, "1"))
	for _, m := range root.members {
		switch m.name {
		case "version", "serverName", "ledgerPath":
		case "defaultPolicy":
			out.put(m.place, "defaults", l.agentXPolicy(m)).shown = m.name
		case "tools":
			if m.value.kind != kindObject {
				out.put(m.place, m.name, m.value)
				continue
			}
			tools := &node{place: m.value.place, kind: kindObject}
			for _, t := range m.value.members {
				name := t.name
				if !strings.Contains(name, "/") || t.value.get("riskLevel") != nil {
					name = server + "/" + name
				}
				tools.put(t.place, name, l.agentXTool(t)).shown = t.name
			}
			out.put(m.place, m.name, tools)
		default:
			out.members = append(out.members, m)
		}
	}
	return out
}

// strangers reports members that neither AgentX nor we know. AgentX ignores them, so only those that are nearly a known
// one are errors. It returns the node without them.
func (l *loader) strangers(n *node, field string, known []string) *node {
	if n.kind != kindObject {
		return n
	}
	kept := make([]member, 0, len(n.members))
	for _, m := range n.members {
		if slices.Contains(known, m.name) || strings.HasPrefix(m.name, "x-") || m.name == "$schema" {
			kept = append(kept, m)
			continue
		}
		if hint := nearest.Hint(m.name, known); hint != "" {
			l.add(m.place, joined(field, m.name), hint, "unknown field %q", m.name)
		} else {
			l.warn(m.place, joined(field, m.name), RuleUnknownField, "unknown field %q has no effect", m.name)
		}
	}
	out := *n
	out.members = kept
	return &out
}

var notInServerName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func (l *loader) agentXServer(root *node) string {
	if l.serverName != "" {
		return l.serverName
	}
	name := agentXServer
	if n := root.get("serverName"); n != nil {
		if n.kind != kindText {
			l.add(n.place, "serverName", "write a text", "is %s", n.describe())
			return name
		}
		if slug := strings.Trim(notInServerName.ReplaceAllString(n.text, "-"), "-_"); slug != "" {
			name = slug[:min(len(slug), 64)]
		}
	}
	return name
}

func (l *loader) agentXPolicy(m member) *node {
	n := l.strangers(m.value, m.name, slices.Concat(agentXDefaults, []string{"timeout", "retries", "ttl"}))
	out := &node{place: m.value.place, kind: kindObject}
	if n.kind != kindObject {
		return n
	}
	l.agentXLimits(out, n, m.name, false)
	return out
}

// agentXLimits translates timeoutMs, maxRetries (a total of attempts) and ttlSeconds; other members stay. Where fill is
// set, missing ones take AgentX's constants.
func (l *loader) agentXLimits(out, n *node, field string, fill bool) {
	limits := []struct {
		theirs, ours string
		least        int
		fallback     int
		write        func(i int) (kind, string)
	}{
		{"timeoutMs", "timeout", 1, agentXTimeoutMs, func(i int) (kind, string) { return kindText, strconv.Itoa(i) + "ms" }},
		{"maxRetries", "retries", 0, agentXAttempts, func(i int) (kind, string) { return kindNumber, strconv.Itoa(max(i-1, 0)) }},
		{"ttlSeconds", "ttl", 1, agentXTTL, func(i int) (kind, string) { return kindText, strconv.Itoa(i) + "s" }},
	}
	for _, limit := range limits {
		theirs, ours := n.member(limit.theirs), n.member(limit.ours)
		switch {
		case theirs != nil && ours != nil:
			l.add(ours.place, joined(field, limit.ours), "keep one of them", "%s and %s say the same twice", limit.theirs, limit.ours)
		case ours != nil:
			out.members = append(out.members, *ours)
		case theirs != nil:
			i, err := strconv.Atoi(theirs.value.text)
			if theirs.value.kind != kindNumber || err != nil || i < limit.least {
				l.add(theirs.value.place, joined(field, limit.theirs), "write an integer, at least "+strconv.Itoa(limit.least), "is %s", theirs.value.describe())
				continue
			}
			k, text := limit.write(i)
			out.put(theirs.place, limit.ours, &node{place: theirs.value.place, kind: k, text: text, size: 1}).shown = limit.theirs
		case fill:
			k, text := limit.write(limit.fallback)
			out.put(n.place, limit.ours, &node{place: n.place, kind: k, text: text, size: 1})
		}
	}
}

// agentXTool translates one tool.
func (l *loader) agentXTool(m member) *node {
	n, field := m.value, joined("tools", m.name)
	if n.kind != kindObject {
		return n
	}
	n = l.strangers(n, field, slices.Concat(agentXTool, toolFields))
	out := &node{place: n.place, kind: kindObject}
	l.agentXLimits(out, n, field, true)
	if risk := n.member("riskLevel"); risk != nil {
		ours, known := agentXRisks[risk.value.text]
		if !known || risk.value.kind != kindText {
			names := []string{"READ_ONLY", "IDEMPOTENT", "MUTATING_SAFE", "MUTATING_CRITICAL"}
			want := nearest.Hint(risk.value.text, names)
			if want == "" {
				want = "there are " + strings.Join(names, ", ")
			}
			l.add(risk.value.place, joined(field, risk.name), want, "is %s", risk.value.describe())
		} else {
			out.put(risk.place, "risk", textNode(risk.value.place, string(ours))).shown = risk.name
		}
	}
	if name := n.member("toolName"); name != nil && name.value.text != m.name {
		l.warn(name.value.place, joined(field, name.name), RuleUnknownField, "has no effect: the tool is %q", m.name)
	}
	keys := n.member("logicalKeys")
	switch {
	case keys != nil && keys.value.kind == kindList && len(keys.value.items) > 0:
		out.put(keys.place, "key", keys.value).shown = keys.name
	case keys != nil && keys.value.kind != kindList:
		l.add(keys.value.place, joined(field, keys.name), "write a list of argument names", "is %s", keys.value.describe())
	case n.get("key") == nil:
		out.put(n.place, "key", textNode(n.place, "all")) // AgentX: no logical keys are all arguments
	}
	if n.get("ours") == nil {
		out.put(n.place, "ours", textNode(n.place, "key"))
	}
	if fields := n.member("sensitiveFields"); fields != nil {
		out.put(fields.place, "sensitive", l.agentXSensitive(fields.value, joined(field, fields.name))).shown = fields.name
	}
	if v := n.member("verifier"); v != nil {
		if inspect := l.agentXVerifier(v, joined(field, v.name)); inspect != nil {
			out.put(v.place, "inspect", inspect).shown = v.name
		}
	}
	if c := n.member("compensator"); c != nil {
		out.put(c.place, "compensate", l.agentXCompensator(c.value, joined(field, c.name))).shown = c.name
	}
	theirs := append(slices.Clone(agentXTool), "timeout", "retries", "ttl")
	for _, own := range n.members {
		if slices.Contains(theirs, own.name) {
			continue
		}
		if twin := out.member(own.name); twin != nil {
			l.add(own.place, joined(field, own.name), "keep one of them", "%s and %s say the same twice", twin.shown, own.name)
			continue
		}
		out.members = append(out.members, own)
	}
	return out
}

// agentXSensitive writes member names as paths: AgentX takes them literally.
func (l *loader) agentXSensitive(n *node, field string) *node {
	if n.kind != kindList {
		return n
	}
	out := &node{place: n.place, kind: kindList}
	for i, item := range n.items {
		if item.kind != kindText || item.text == "" {
			l.add(item.place, indexed(field, i), "write a member's name", "is %s", item.describe())
			continue
		}
		name := item.text
		if _, err := contract.ParseElems(name); err != nil {
			name = contract.ElemsString([]contract.Elem{{Member: name}})
		}
		out.items = append(out.items, textNode(item.place, name))
	}
	return out
}

// agentXVerifier makes an inspector of a verifier. Absence is not derived: AgentX takes every other value for a proof of
// it. Without matchKeyPath it takes any answer for a proof of presence, which is none: there is no inspector then,
// unless our own conditions stand beside.
func (l *loader) agentXVerifier(m *member, field string) *node {
	n := m.value
	if n.kind != kindObject {
		return n
	}
	n = l.strangers(n, field, slices.Concat(agentXVerifier, ownInspect))
	out := &node{place: n.place, kind: kindObject}
	l.agentXCall(out, n, field, ownInspect)
	path, expected := n.member("matchKeyPath"), n.member("expectedValue")
	if n.get("present") == nil && path != nil {
		condition, err := presentCondition(path.value.text, expected)
		if err != nil || path.value.kind != kindText {
			l.add(path.value.place, joined(field, path.name), "such as data.status", "is %s, not a dotted path", path.value.describe())
			condition = "false"
		}
		out.put(path.place, "present", textNode(path.value.place, condition)).shown = path.name
	}
	if out.get("present") == nil && out.get("absent") == nil {
		l.warn(m.place, field, RuleNoPresent,
			"a verifier without matchKeyPath takes any answer for a proof, and is not used: add matchKeyPath, or our own present and absent")
		return nil
	}
	return out
}

// presentCondition says that the value at AgentX's dotted path is the expected one, or any but null.
func presentCondition(path string, expected *member) (string, error) {
	value := "response"
	for segment := range strings.SplitSeq(path, ".") {
		if segment == "" {
			return "", contract.ErrNoValue
		}
		byName := expr.Select(value, []contract.Elem{{Member: segment}})
		if i, err := strconv.Atoi(segment); err == nil && i >= 0 && strconv.Itoa(i) == segment {
			byIndex := expr.Select(value, []contract.Elem{{Index: i, IsItem: true}})
			value = "(type(" + value + ") == list ? " + byIndex + " : " + byName + ")"
			continue
		}
		value = byName
	}
	if expected == nil {
		return value + " != null", nil
	}
	literal, err := expr.Literal(expected.value.json())
	if err != nil {
		return "", err
	}
	return value + " == " + literal, nil
}

func (l *loader) agentXCompensator(n *node, field string) *node {
	if n.kind != kindObject {
		return n
	}
	n = l.strangers(n, field, slices.Concat(agentXCompensator, ownCompensate))
	out := &node{place: n.place, kind: kindObject}
	l.agentXCall(out, n, field, ownCompensate)
	return out
}

// agentXCall translates toolName and argumentMapping, and takes our own members over.
func (l *loader) agentXCall(out, n *node, field string, own []string) {
	for _, m := range n.members {
		switch {
		case m.name == "toolName":
			out.put(m.place, "tool", m.value).shown = m.name
		case m.name == "argumentMapping":
			out.put(m.place, "args", l.agentXMapping(m.value, joined(field, m.name))).shown = m.name
		case slices.Contains(own, m.name):
			if twin := out.member(m.name); twin != nil {
				l.add(m.place, joined(field, m.name), "keep one of them", "%s and %s say the same twice", twin.shown, m.name)
				continue
			}
			out.members = append(out.members, m)
		}
	}
	if out.get("args") == nil { // AgentX: no mapping passes all arguments
		out.put(n.place, "args", textNode(n.place, "${args}"))
	}
}

// agentXMapping translates target → source, where a source is result.<key> or the name of an argument.
func (l *loader) agentXMapping(n *node, field string) *node {
	if n.kind == kindObject && len(n.members) == 0 {
		return textNode(n.place, "${args}")
	}
	out := &node{place: n.place, kind: kindObject}
	if n.kind != kindObject {
		return n
	}
	for _, m := range n.members {
		if m.value.kind != kindText {
			l.add(m.value.place, joined(field, m.name), `write the name of an argument, or "result.<key>"`, "is %s", m.value.describe())
			continue
		}
		p := contract.Path{Root: "args", Elems: []contract.Elem{{Member: m.value.text}}}
		if key, found := strings.CutPrefix(m.value.text, "result."); found && key != "" {
			p.Root, p.Elems = "result", nil
			key = strings.TrimPrefix(key, "response.")
			for segment := range strings.SplitSeq(key, ".") {
				if key != "response" {
					p.Elems = append(p.Elems, contract.Elem{Member: segment})
				}
			}
		}
		out.put(m.place, m.name, textNode(m.value.place, "${"+p.String()+"}"))
	}
	return out
}

// put adds a member to a node under construction.
func (n *node) put(at place, name string, value *node) *member {
	n.members = append(n.members, member{place: at, name: name, value: value})
	return &n.members[len(n.members)-1]
}

func textNode(at place, s string) *node { return &node{place: at, kind: kindText, text: s, size: 1} }

func numberNode(at place, s string) *node {
	return &node{place: at, kind: kindNumber, text: s, size: 1}
}

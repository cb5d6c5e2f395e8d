package manifest

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// builder turns a document into a manifest: it decodes, fills defaults in, and checks what refers to what.
type builder struct {
	*problems
	doc     *document
	m       *Manifest
	servers []string // names of all servers, valid or not
	tools   map[string]*toolPlace
}

// toolPlace is where a contract stands, for the lint.
type toolPlace struct {
	place
	field string
	node  *node
}

// build makes the manifest. servers replace, or stand beside, those of the document; found are the problems that are
// known already.
func (d *document) build(servers map[string]contract.Server, found Errors) (*Manifest, error) {
	doc := *d
	doc.replaced = servers
	b := &builder{
		problems: &problems{errors: found, warnings: slices.Clone(d.warnings)},
		doc:      &doc,
		m: &Manifest{
			File: d.file, Servers: map[string]contract.Server{}, Tools: map[string]contract.Tool{}, doc: &doc,
		},
		servers: doc.serverNames(),
		tools:   map[string]*toolPlace{},
	}
	b.policies()
	for _, m := range doc.servers {
		if _, replaced := servers[m.name]; replaced {
			continue
		}
		if s, ok := b.server(m); ok {
			b.m.Servers[m.name] = s
		}
	}
	for name, s := range servers {
		if !serverName.MatchString(name) || s.Name != name || ways(s) != 1 {
			b.add(place{file: d.file}, joined("servers", name), "", "the server given by the program has no valid name, or not exactly one way to reach it")
		}
		b.m.Servers[name] = s
	}
	if _, known := b.m.Servers[doc.standIn]; !known && doc.standIn != "" {
		b.m.Servers[doc.standIn] = contract.Server{Name: doc.standIn}
	}
	for _, m := range doc.tools {
		if t, ok := b.tool(m); ok {
			b.m.Tools[t.Ref()] = t
		}
	}
	b.checkTools()
	for _, s := range doc.plans {
		if plan := b.plan(s); plan != nil {
			b.m.Plans = append(b.m.Plans, plan)
		}
	}
	b.agents()
	if err := b.err(); err != nil {
		return nil, err
	}
	b.lint()
	slices.SortStableFunc(b.warnings, func(x, y Warning) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	b.m.Warnings, b.m.places = b.warnings, b.tools
	return b.m, nil
}

func ways(s contract.Server) int {
	n := 0
	for _, way := range []bool{s.HTTP != nil, s.Stdio != nil, s.WebMCP != nil} {
		if way {
			n++
		}
	}
	return n
}

// policies reads what holds for the whole manifest.
func (b *builder) policies() {
	b.m.Defaults = Defaults{Timeout: defaultTimeout, Retries: defaultRetries, TTL: defaultTTL}
	for _, n := range b.doc.defaults {
		if n.isNull() {
			continue
		}
		o, ok := b.object(n, "defaults", "timeout", "retries", "ttl")
		if !ok {
			continue
		}
		b.m.Defaults = Defaults{
			Timeout: o.duration("timeout", b.m.Defaults.Timeout, maxTimeout),
			Retries: o.count("retries", b.m.Defaults.Retries, 0, maxRetries),
			TTL:     o.duration("ttl", b.m.Defaults.TTL, maxTime),
		}
	}
	b.m.Unlisted = UnlistedProtect
	if n := b.doc.unlisted; n != nil {
		o := object{problems: b.problems, node: &node{kind: kindObject, members: []member{{name: "unlisted", value: n}}}}
		b.m.Unlisted = Unlisted(o.choice("unlisted", string(UnlistedProtect),
			string(UnlistedProtect), string(UnlistedPass), string(UnlistedRefuse)))
	}
	for _, m := range b.doc.approvers {
		field := joined("approvers", m.name)
		key, problem := approverKey(m.value)
		if problem != "" {
			b.add(m.value.place, field, `such as "ed25519:…" with the 32 bytes of the key in base64`, "%s", problem)
			continue
		}
		if strings.TrimSpace(m.name) == "" {
			b.add(m.place, field, "", "the name of the approver is empty")
		}
		if b.m.Approvers == nil {
			b.m.Approvers = map[string]ed25519.PublicKey{}
		}
		b.m.Approvers[m.name] = key
	}
}

// approverKey reads "ed25519:<base64>", in either alphabet, with or without padding.
func approverKey(n *node) (ed25519.PublicKey, string) {
	encoded, found := strings.CutPrefix(n.text, "ed25519:")
	if n.kind != kindText || !found {
		return nil, "is no approver key"
	}
	encoded = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(encoded), "=")
	key, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, "the key is not in base64"
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, "the key has not " + plural(ed25519.PublicKeySize, "byte") + ", but " + plural(len(key), "byte")
	}
	return key, ""
}

// agents reads what the bridge lets agents start.
func (b *builder) agents() {
	plans := make([]string, len(b.m.Plans))
	for i, p := range b.m.Plans {
		plans[i] = p.Name
	}
	for _, s := range b.doc.plans { // a broken plan is reported once, as such
		plans = append(plans, s.title())
	}
	for _, m := range b.doc.agents {
		field := joined("agents", m.name)
		o, ok := b.object(m.value, field, "plans", "open", "perMinute")
		if !ok {
			continue
		}
		if strings.TrimSpace(m.name) == "" {
			b.add(m.place, field, "", "the name of the agent is empty")
		}
		agent := Agent{
			Open:      o.count("open", 0, 1, maxCount),
			PerMinute: o.count("perMinute", 0, 1, maxCount),
		}
		if !o.has("plans") {
			b.add(m.place, field, "such as plans: [provision-workspace]", `the field "plans" is missing`)
		}
		for _, n := range o.list("plans", "[provision-workspace]") {
			if !slices.Contains(plans, n.text) {
				want := nearest.Hint(n.text, plans)
				b.add(n.place, o.in("plans"), want, "there is no plan %q", n.text)
			}
			agent.Plans = append(agent.Plans, n.text)
		}
		if b.m.Agents == nil {
			b.m.Agents = map[string]Agent{}
		}
		b.m.Agents[m.name] = agent
	}
}

const (
	maxRetries = 100
	maxCount   = 1_000_000
)

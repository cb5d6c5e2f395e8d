package manifest

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// Manifest is a manifest that was read and found valid. It is not to be changed; it may be used by several goroutines
// at once.
type Manifest struct {
	// File it was read from, as it was named.
	File string
	// Servers by their local names.
	Servers map[string]contract.Server
	// Tools are the contracts by "server/tool". See also the method Tool.
	Tools map[string]contract.Tool
	// Plans in the order in which they stand in the files.
	Plans []*Plan
	// Defaults for what contracts and plans leave out.
	Defaults Defaults
	// Unlisted says what the proxy does with tools that have no contract.
	Unlisted Unlisted
	// Approvers are the public keys of those whose approvals count, by name. If there are any, approvals must be signed.
	Approvers map[string]ed25519.PublicKey
	// Agents says what the bridge lets each agent start. Without any, every agent may start every plan.
	Agents map[string]Agent
	// Warnings of the lint.
	Warnings []Warning

	doc    *document
	places map[string]*toolPlace
}

// Defaults are the values that contracts and plans take where they say nothing.
type Defaults struct {
	// Timeout of a call: 15s unless the manifest says otherwise.
	Timeout contract.Duration `json:"timeout"`
	// Retries after proven absence: 2 unless the manifest says otherwise.
	Retries int `json:"retries"`
	// TTL is how long the same intent is answered with the same outcome: 168h unless the manifest says otherwise.
	TTL contract.Duration `json:"ttl"`
}

// The built-in defaults.
const (
	defaultTimeout = contract.Duration(15 * time.Second)
	defaultRetries = 2
	defaultTTL     = contract.Duration(168 * time.Hour)
	defaultQuorum  = 1
	defaultExpires = contract.Duration(72 * time.Hour)
)

// Unlisted is what happens to a call of a tool without a contract.
type Unlisted string

// What may happen to calls of tools without a contract.
const (
	// UnlistedProtect runs them as transactions of one step, without inspector. It is the default.
	UnlistedProtect Unlisted = "protect"
	// UnlistedPass lets them through unprotected.
	UnlistedPass Unlisted = "pass"
	// UnlistedRefuse refuses them.
	UnlistedRefuse Unlisted = "refuse"
)

// Agent is what the bridge lets one agent start.
type Agent struct {
	// Plans it may start, by name.
	Plans []string `json:"plans"`
	// Open is how many of its transactions may be open at once; 0: any number.
	Open int `json:"open,omitempty"`
	// PerMinute is how many it may start in a minute; 0: any number.
	PerMinute int `json:"perMinute,omitempty"`
}

// New returns a manifest that was not read from a file: the given servers, no contracts, no plans. Every tool of the
// servers is unlisted.
func New(servers ...contract.Server) (*Manifest, error) {
	byName := make(map[string]contract.Server, len(servers))
	for _, s := range servers {
		byName[s.Name] = s
	}
	return (&document{file: "manifest"}).build(byName, nil)
}

// Server returns the server of that name. The error wraps ErrUnknownServer and names the nearest one.
func (m *Manifest) Server(name string) (contract.Server, error) {
	if s, ok := m.Servers[name]; ok {
		return s, nil
	}
	return contract.Server{}, unknown(ErrUnknownServer, m.File, name, slices.Sorted(maps.Keys(m.Servers)))
}

// Tool returns the contract of "server/tool", and whether the manifest lists it. A tool that it does not list is
// critical, without inspector and compensator, and its error answers are taken at the owner's word.
func (m *Manifest) Tool(ref string) (tool contract.Tool, listed bool) {
	if tool, listed = m.Tools[ref]; listed {
		return tool, true
	}
	server, name, _ := strings.Cut(ref, "/")
	return unlistedTool(server, name, m.Defaults), false
}

func unlistedTool(server, name string, defaults Defaults) contract.Tool {
	return contract.Tool{
		Server: server, Name: name, Risk: contract.RiskCritical,
		Timeout: defaults.Timeout, Settle: defaults.Timeout, TTL: defaults.TTL,
		TrustRefusals: true,
	}
}

// Plan returns the plan of that name. The error wraps ErrUnknownPlan and names the nearest one.
func (m *Manifest) Plan(name string) (*Plan, error) {
	names := make([]string, len(m.Plans))
	for i, p := range m.Plans {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	return nil, unknown(ErrUnknownPlan, m.File, name, names)
}

func unknown(sentinel error, file, name string, known []string) error {
	hint := nearest.Hint(name, known)
	if hint == "" && len(known) > 0 {
		hint = "there are " + strings.Join(known, ", ")
	}
	if hint == "" {
		hint = "there are none"
	}
	return fmt.Errorf("%w %q in %s (%s)", sentinel, name, file, hint)
}

// LongestTTL is the longest time for which an outcome is to be remembered. The retention of the namespace must cover
// it.
func (m *Manifest) LongestTTL() time.Duration {
	longest := m.Defaults.TTL
	for _, t := range m.Tools {
		longest = max(longest, t.TTL)
	}
	for _, p := range m.Plans {
		longest = max(longest, p.TTL)
	}
	return longest.Std()
}

// WithServers returns the manifest with the given servers in place of those of the same names, or beside the others,
// and with everything that depends on them found anew. The keys are the local names. The manifest itself stays as it
// is.
func (m *Manifest) WithServers(servers map[string]contract.Server) (*Manifest, error) {
	all := maps.Clone(m.doc.replaced)
	if all == nil {
		all = map[string]contract.Server{}
	}
	for name, s := range servers {
		if s.Name == "" {
			s.Name = name
		}
		if s.Name != name {
			return nil, fmt.Errorf("server %q is given under the name %q: use one name", s.Name, name)
		}
		all[name] = s
	}
	return m.doc.build(all, nil)
}

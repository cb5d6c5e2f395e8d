package manifest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// load parses a text that must be valid.
func load(t require.TestingT, text string) *Manifest {
	m, err := parseAlone("mcpx.yaml", []byte(text))
	require.NoError(t, err)
	return m
}

// write makes files in a new directory.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestEveryFieldOfAManifestIsRead(t *testing.T) {
	public, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	m := load(t, `
version: 1
servers:
  routing:
    http: {url: "http://127.0.0.1:9103/mcp", headers: {Authorization: "Bearer ${secret:ROUTING}", X-Count: 5}}
    trust: [annotations, refusals]
    secrets: [ROUTING]
    principal: deploy-bot
  files: {stdio: {command: [node, server.js, --port, 5], env: {TOKEN: "${secret:T}"}, dir: /srv}, secrets: T, trust: refusals}
  frontend: {webmcp: {origin: "http://localhost:9104", path: /app, mode: tab, profile: work}}
defaults: {timeout: 7s, retries: 1, ttl: 24h}
unlisted: refuse
approvers: {alice: "ed25519:`+base64.StdEncoding.EncodeToString(public)+`", bob: "ed25519:`+base64.RawURLEncoding.EncodeToString(public)+`"}
agents: {ops: {plans: [p], open: 5, perMinute: 10}}
tools:
  routing/create_route:
    risk: critical
    key: [workspace, name]
    volatile: [description]
    sensitive: [token, '["a b"][0]']
    timeout: 5s
    retries: 3
    settle: 2s
    ttl: 48h
    refuse: error.code == "QUOTA"
    ours: key
    inspect:
      tool: files/get_route
      args: {name: "${args.name}", of: "${result.id}", tx: "${tx.id}", step: "${step.attempt}"}
      present: response.owner == tx.id && response.id == result.ident
      absent: error.code == "NOT_FOUND"
      result: {route_id: "${response.id}", name: "${args.name}", tx: "${tx.id}"}
      before: true
      timeout: 1s
    compensate: {tool: delete_route, args: {route_id: "${result.route_id}"}, retries: 5, timeout: 3s, settle: 4s, within: 24h}
    invalidates: [delete_route, routing/rename_route]
  routing/all: {key: all}
  files/plain:
plans:
  - name: p
    description: what it does
    input: {type: object}
    key: [a]
    ttl: 720h
    approval: {start: required, quorum: 2, fourEyes: true, expires: 1h}
    steps:
      - {id: one, tool: routing/create_route, args: {name: x}, notAfter: 10m}
      - {id: two, tool: frontend/deploy, args: "${steps.one.result.args}", needs: one}
`)
	assert.Equal(t, Defaults{Timeout: contract.Duration(7 * time.Second), Retries: 1, TTL: contract.Duration(24 * time.Hour)}, m.Defaults)
	assert.Equal(t, UnlistedRefuse, m.Unlisted)
	assert.Equal(t, map[string]ed25519.PublicKey{"alice": public, "bob": public}, m.Approvers)
	assert.Equal(t, map[string]Agent{"ops": {Plans: []string{"p"}, Open: 5, PerMinute: 10}}, m.Agents)
	assert.Equal(t, map[string]contract.Server{
		"routing": {
			Name: "routing", Principal: "deploy-bot", Secrets: []string{"ROUTING"}, TrustRefusals: true, TrustAnnotations: true,
			HTTP: &contract.HTTPServer{URL: "http://127.0.0.1:9103/mcp", Headers: map[string]string{"Authorization": "Bearer ${secret:ROUTING}", "X-Count": "5"}},
		},
		"files": {
			Name: "files", Secrets: []string{"T"}, TrustRefusals: true,
			Stdio: &contract.StdioServer{Command: []string{"node", "server.js", "--port", "5"}, Env: map[string]string{"TOKEN": "${secret:T}"}, Dir: "/srv"},
		},
		"frontend": {Name: "frontend", WebMCP: &contract.WebMCPServer{Origin: "http://localhost:9104", Path: "/app", Mode: "tab", Profile: "work"}},
	}, m.Servers)
	second := func(n int) contract.Duration { return contract.Duration(time.Duration(n) * time.Second) }
	assert.Equal(t, contract.Tool{
		Server: "routing", Name: "create_route", Risk: contract.RiskCritical,
		Key: []string{"workspace", "name"}, Volatile: []string{"description"}, Sensitive: []string{"token", `["a b"][0]`},
		Timeout: second(5), Retries: 3, Settle: second(2), TTL: contract.Duration(48 * time.Hour),
		Refuse: `error.code == "QUOTA"`, TrustRefusals: true, OursByKey: true,
		Inspect: &contract.Inspect{
			Server: "files", Tool: "get_route",
			Args:    contract.Template(`{"name":"${args.name}","of":"${result.id}","tx":"${tx.id}","step":"${step.attempt}"}`),
			Present: `response.owner == tx.id && response.id == result.ident`, Absent: `error.code == "NOT_FOUND"`,
			Result: contract.Template(`{"route_id":"${response.id}","name":"${args.name}","tx":"${tx.id}"}`), Before: true,
			Proves: []contract.Proof{contract.ProofTx, contract.ProofResult}, Timeout: second(1),
		},
		Compensate: &contract.Compensate{
			Server: "routing", Tool: "delete_route", Args: contract.Template(`{"route_id":"${result.route_id}"}`),
			Retries: 5, Timeout: second(3), Settle: second(4), Within: contract.Duration(24 * time.Hour),
		},
		Invalidates: []string{"delete_route", "rename_route"},
	}, m.Tools["routing/create_route"])
	assert.True(t, m.Tools["routing/all"].KeyAll)
	assert.Equal(t, contract.Tool{
		Server: "files", Name: "plain", Risk: contract.RiskCritical, TrustRefusals: true,
		Timeout: second(7), Settle: second(7), Retries: 1, TTL: contract.Duration(24 * time.Hour),
	}, m.Tools["files/plain"])

	p, err := m.Plan("p")
	require.NoError(t, err)
	d := p.Definition
	assert.Equal(t, "what it does", d.Description)
	assert.Equal(t, contract.Approval{Start: "required", Quorum: 2, FourEyes: true, Expires: contract.Duration(time.Hour)}, d.Approval)
	assert.Equal(t, contract.Duration(720*time.Hour), d.TTL)
	assert.Equal(t, []contract.Step{
		{ID: "one", Tool: "routing/create_route", Args: contract.Template(`{"name":"x"}`), NotAfter: contract.Duration(10 * time.Minute),
			Keep: []string{"args", "id", "ident", "route_id"}},
		{ID: "two", Tool: "frontend/deploy", Args: contract.Template(`"${steps.one.result.args}"`), Needs: []string{"one"}},
	}, d.Steps)
	assert.Len(t, d.Tools, 2)
	assert.Equal(t, map[string]contract.ServerRef{
		"routing": m.Servers["routing"].Ref(), "files": m.Servers["files"].Ref(), "frontend": m.Servers["frontend"].Ref(),
	}, d.Servers)
	assert.Equal(t, 720*time.Hour, m.LongestTTL())
}

func TestWhatIsLeftOutHasDefaults(t *testing.T) {
	m := load(t, `
version: 1
servers: {a: {http: {url: "http://h/"}}}
tools:
  a/x: {timeout: 3s, inspect: {tool: get, present: "true"}, compensate: {tool: undo}}
plans:
  p: {steps: [{id: s, tool: a/x}]}
`)
	second := contract.Duration(time.Second)
	x := m.Tools["a/x"]
	assert.Equal(t, contract.RiskCritical, x.Risk)
	assert.Equal(t, 2, x.Retries)
	assert.Equal(t, 3*second, x.Settle)
	assert.Equal(t, 15*second, x.Inspect.Timeout)
	assert.Equal(t, 3*second, x.Compensate.Timeout)
	assert.Equal(t, 3*second, x.Compensate.Settle)
	assert.Equal(t, 2, x.Compensate.Retries)
	assert.Equal(t, "a", x.Compensate.Server)
	d := m.Plans[0].Definition
	assert.Equal(t, contract.Approval{Start: "auto", Quorum: 1, Expires: contract.Duration(72 * time.Hour)}, d.Approval)
	assert.Equal(t, contract.Duration(168*time.Hour), d.TTL)
	assert.Equal(t, 168*time.Hour, m.LongestTTL())
	assert.Equal(t, UnlistedProtect, m.Unlisted)
}

func TestAnUnlistedToolIsCriticalAndItsRefusalsAreBelieved(t *testing.T) {
	m, err := New(contract.Server{Name: "files", Stdio: &contract.StdioServer{Command: []string{"x"}}})
	require.NoError(t, err)
	tool, listed := m.Tool("files/write_file")
	assert.False(t, listed)
	assert.Equal(t, contract.RiskCritical, tool.Risk)
	assert.True(t, tool.TrustRefusals)
	assert.Zero(t, tool.Retries)
	assert.Equal(t, "files/write_file", tool.Ref())
	assert.Nil(t, tool.Inspect)
	_, err = New(contract.Server{Name: "no way"})
	assert.Error(t, err)
}

func TestUnknownNamesAreAnsweredWithTheNearest(t *testing.T) {
	m := load(t, `
version: 1
servers: {routing: {http: {url: "http://h/"}}, files: {http: {url: "http://h/"}}}
plans: {provision: {steps: [{id: s, tool: routing/x}]}, retire: {steps: [{id: s, tool: routing/x}]}}
`)
	_, err := m.Plan("provison")
	require.ErrorIs(t, err, ErrUnknownPlan)
	assert.EqualError(t, err, `unknown plan "provison" in mcpx.yaml (did you mean "provision"?)`)
	_, err = m.Plan("zzz")
	assert.EqualError(t, err, `unknown plan "zzz" in mcpx.yaml (there are provision, retire)`)
	_, err = m.Server("rooting")
	require.ErrorIs(t, err, ErrUnknownServer)
	assert.EqualError(t, err, `unknown server "rooting" in mcpx.yaml (did you mean "routing"?)`)
	s, err := m.Server("files")
	require.NoError(t, err)
	assert.Equal(t, "files", s.Name)
	_, err = load(t, "version: 1").Plan("p")
	assert.EqualError(t, err, `unknown plan "p" in mcpx.yaml (there are none)`)
}

func TestIncludedFilesLieBelowTheFileThatIncludesThem(t *testing.T) {
	dir := write(t, map[string]string{
		"base/mcpx.yaml": `
version: 1
servers: {a: {http: {url: "http://base/"}}, b: {stdio: {command: [x]}}}
defaults: {timeout: 1s, retries: 5}
unlisted: pass
tools: {a/x: {retries: 1}, a/y: {retries: 1}}
planFiles: [plans/*.yaml]
plans: {inline: {steps: [{id: base, tool: a/x}]}}
`,
		"base/plans/one.yaml": "name: one\nsteps: [{id: s, tool: a/x}]\n",
		"base/plans/two.yaml": "name: two\nsteps: [{id: s, tool: b/x}]\n",
		"site/mcpx.yaml": `
version: 1
include: ../base/mcpx.yaml
servers: {a: {http: {url: "http://site/"}}}
defaults: {timeout: 2s}
tools: {a/x: {key: all}}
plans: {inline: {steps: [{id: site, tool: a/y}]}}
`,
	})
	m, err := Load(filepath.Join(dir, "site", "mcpx.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "http://site/", m.Servers["a"].HTTP.URL)
	assert.Equal(t, filepath.Join(dir, "base"), m.Servers["b"].Stdio.Dir, "directories are beside the file that names them")
	assert.Equal(t, contract.Duration(2*time.Second), m.Defaults.Timeout)
	assert.Equal(t, 5, m.Defaults.Retries)
	assert.Equal(t, UnlistedPass, m.Unlisted)
	assert.Equal(t, 5, m.Tools["a/x"].Retries, "an entry replaces another whole")
	assert.Equal(t, 1, m.Tools["a/y"].Retries)
	var names []string
	for _, p := range m.Plans {
		names = append(names, p.Name)
	}
	assert.ElementsMatch(t, []string{"one", "two", "inline"}, names)
	p, err := m.Plan("inline")
	require.NoError(t, err)
	assert.Equal(t, "site", p.Definition.Steps[0].ID)
	p, err = m.Plan("one")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "base", "plans", "one.yaml"), p.File)
}

func TestFilesIncludingEachOtherAreRefused(t *testing.T) {
	dir := write(t, map[string]string{
		"a.yaml": "version: 1\ninclude: [b.yaml]\n",
		"b.yaml": "version: 1\ninclude: [c.yaml]\n",
		"c.yaml": "version: 1\ninclude: [a.yaml]\n",
		"d.yaml": "version: 1\ninclude: [/dev/zero]\n",
	})
	_, err := Load(filepath.Join(dir, "a.yaml"))
	assert.ErrorContains(t, err, "c.yaml:2:11: include: a.yaml includes itself")
	_, err = Load(filepath.Join(dir, "d.yaml"))
	assert.ErrorContains(t, err, "/dev/zero cannot be included: not a regular file")
}

func TestTwoProjectsWithTheSameServerNeverMeet(t *testing.T) {
	text := "version: 1\nservers: {files: {stdio: {command: [npx, server-filesystem, .]}}}\n"
	one, err := Load(filepath.Join(write(t, map[string]string{"mcpx.yaml": text}), "mcpx.yaml"))
	require.NoError(t, err)
	two, err := Load(filepath.Join(write(t, map[string]string{"mcpx.yaml": text}), "mcpx.yaml"))
	require.NoError(t, err)
	assert.NotEqual(t, one.Servers["files"].Identity(), two.Servers["files"].Identity())
}

func TestTheManifestIsFoundByNameOrByTheEnvironment(t *testing.T) {
	t.Setenv(EnvManifest, "")
	dir := write(t, map[string]string{"agentx.config.json": "{}", "sub/mcpx.yaml": "", "typo/mpcx.yaml": ""})
	found, err := Find(dir)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "agentx.config.json"), found)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mcpx.yml"), nil, 0o644))
	found, err = Find(dir)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "mcpx.yml"), found)

	_, err = Find(t.TempDir())
	require.ErrorIs(t, err, ErrNoManifest)
	assert.ErrorContains(t, err, "looked for mcpx.yaml, mcpx.yml, mcpx.json, agentx.config.json")
	_, err = Find(filepath.Join(dir, "typo"))
	assert.ErrorContains(t, err, "is mpcx.yaml meant?")

	t.Setenv(EnvManifest, filepath.Join(dir, "sub", "mcpx.yaml"))
	found, err = Find(dir)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "sub", "mcpx.yaml"), found)
	t.Setenv(EnvManifest, filepath.Join(dir, "nothing.yaml"))
	_, err = Find(dir)
	require.ErrorIs(t, err, ErrNoManifest)
	require.ErrorIs(t, err, fs.ErrNotExist)

	_, err = Load(filepath.Join(dir, "nothing.yaml"))
	require.ErrorIs(t, err, ErrNoManifest)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAnAgentXManifestBelongsToTheServerThatIsNamed(t *testing.T) {
	text := []byte(`{"version": "1.0.0", "tools": {"pay": {"toolName": "pay", "riskLevel": "MUTATING_CRITICAL"}}}`)
	m, err := Parse("agentx.config.json", text)
	require.NoError(t, err)
	assert.Contains(t, m.Tools, "agentx/pay")
	m, err = Parse("agentx.config.json", text, ServerName("bank"))
	require.NoError(t, err)
	assert.Contains(t, m.Tools, "bank/pay")
	assert.Equal(t, contract.Server{Name: "bank"}, m.Servers["bank"])
	wrapped, err := m.WithServers(map[string]contract.Server{"bank": {Stdio: &contract.StdioServer{Command: []string{"bank"}}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"bank"}, wrapped.Servers["bank"].Stdio.Command)
	assert.Contains(t, wrapped.Tools, "bank/pay")
	_, err = Parse("agentx.config.json", []byte(`{"version": 1, "tools": {"pay": {"riskLevel": "READ_ONLY"}}}`))
	assert.ErrorContains(t, err, `"pay" is not of the form server/tool`, "a version of ours makes it ours")
}

func TestAPlanGivenInlineIsResolvedAgainstTheManifest(t *testing.T) {
	m := load(t, `
version: 1
servers: {a: {http: {url: "http://h/"}}}
tools: {a/x: {retries: 7}}
plans: {own: {steps: [{id: s, tool: a/x}]}}
agents: {ops: {plans: [own]}}
`)
	p, err := m.Inline("plan.yaml", []byte("name: once\nsteps: [{id: s, tool: a/x, args: {n: 1}}]"))
	require.NoError(t, err)
	assert.Equal(t, 7, p.Definition.Tools["a/x"].Retries)
	assert.Len(t, m.Plans, 1, "the manifest stays as it is")
	for text, want := range map[string]string{
		"name: own\nsteps: [{id: s, tool: a/x}]":                            `plan.yaml:1:7: name: the manifest has a plan "own" already`,
		"name: once\nsteps: [{id: s, tool: b/x}]":                           `plan.yaml:2:23: steps.s.tool: there is no server "b"`,
		"name: once\nsteps: [{id: s, tool: a/x, args: {a: '${secret:X}'}}]": "references to secrets are not supported",
		"[": "cannot be read as YAML",
	} {
		_, err := m.Inline("plan.yaml", []byte(text))
		assert.ErrorContains(t, err, want)
	}
}

func TestCheckComparesTheManifestWithTheToolsOfTheServer(t *testing.T) {
	m := load(t, `
version: 1
servers: {a: {http: {url: "http://h/"}}, b: {http: {url: "http://h/"}}}
tools:
  a/create: {inspect: {tool: gett, args: {name: "${args.name}"}, present: response.owner == tx.id}, compensate: {tool: delete, args: {identifier: "${result.id}"}}}
  b/other: {}
plans:
  p: {steps: [{id: s, tool: a/create, args: {nam: x, size: many, owner: 5, tags: ["${tx.id}", 5]}}, {id: t, tool: a/broken, args: {a: 1}}, {id: u, tool: a/create, args: "${input.all}"}]}
`)
	closed := func(required, properties string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"required":[` + required + `],"properties":{` + properties + `}}`)
	}
	got := m.Check("a", map[string]json.RawMessage{
		"create": closed(`"name","owner"`, `"name":{"type":"string"},"owner":{"type":"string"},"size":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}`),
		"get":    closed(`"name"`, `"name":{}`),
		"delete": closed(`"id"`, `"id":{}`),
		"broken": json.RawMessage(`{"type":5}`),
	})
	var lines []string
	for _, w := range got {
		lines = append(lines, w.Place+": "+w.Text+" ["+string(w.Rule)+"]")
	}
	assert.Equal(t, []string{
		`tools["a/create"].inspect: the server a has no tool "gett" (did you mean "get"?) [unknown-tool]`,
		`tools["a/create"].compensate.args.identifier: delete takes no argument "identifier" (there are id) [unknown-argument]`,
		`tools["a/create"].compensate.args: delete requires the argument "id" [missing-argument]`,
		`plans.p.steps.s.args.nam: create takes no argument "nam" (did you mean "name"?) [unknown-argument]`,
		`plans.p.steps.s.args.owner: create does not take it: it is of type number; the schema says string [wrong-argument]`,
		`plans.p.steps.s.args.size: create does not take it: it is of type string; the schema says integer [wrong-argument]`,
		`plans.p.steps.s.args: create requires the argument "name" [missing-argument]`,
		`plans.p.steps.t: the input schema of broken cannot be used: /type is none of the values that the schema lists: ["array","boolean","integer","null","number","object","string"] [tool-schema]`,
	}, lines)
	assert.Empty(t, m.Check("c", nil))
}

func TestWhatIsReferredToInAResultIsKept(t *testing.T) {
	for refs, want := range map[string][]string{
		`{a: "${steps.s.result.x.y}", b: "${steps.s.result.x}", c: "id ${steps.s.result.items[0].id}"}`: {`compensated`, `inspected`, `items[0].id`, `seen`, `x`},
		`{a: '${steps.s.result["a b"]}'}`: {`["a b"]`, `compensated`, `inspected`, `seen`},
		`{a: "${steps.s.result}"}`:        {``},
		`{}`:                              {`compensated`, `inspected`, `seen`},
	} {
		m := load(t, `
version: 1
servers: {a: {http: {url: "http://h/"}}}
tools:
  a/x:
    inspect: {tool: get, args: {a: "${result.inspected}"}, present: result == null || response.a == result.seen}
    compensate: {tool: undo, args: {a: "${result.compensated}", b: "${args.name}"}}
plans: {p: {steps: [{id: s, tool: a/x}, {id: t, tool: a/y, args: `+refs+`}]}}
`)
		assert.Equal(t, want, m.Plans[0].Definition.Steps[0].Keep, refs)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	_, err := parseAlone("mcpx.yaml", []byte("version: 1\ntools: {"+strings.Repeat("x: , ", 1)+"}\n"+manyFields(1000)))
	require.Error(t, err)
	assert.LessOrEqual(t, strings.Count(err.Error(), "\n"), maxProblems)
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("unknown" + strings.Repeat("z", i%50) + string(rune('a'+i%26)) + ": 1\n")
	}
	return b.String()
}

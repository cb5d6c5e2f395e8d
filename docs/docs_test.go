package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/manifest/expr"
)

// Examples are fenced blocks of YAML and JSON. One that begins with its version is a manifest, and loads; one that begins
// with its name is the file of a plan, which a manifest after it reads. A file after the language is where the block is
// written, so that others find it; "clean" says that the lint has nothing to say of it. A block of the language yml is
// wrong on purpose: the next block says how.
func TestEveryExampleLoads(t *testing.T) {
	for _, p := range pages(t) {
		t.Run(filepath.Base(p.name), func(t *testing.T) {
			e := examples{dir: t.TempDir()}
			for _, b := range p.blocks() {
				e.check(t, b)
			}
			assert.Empty(t, e.broken, "what is wrong with a broken example is not shown")
		})
	}
}

// examples are those of one page.
type examples struct {
	dir    string
	last   *manifest.Manifest // that was loaded
	broken string             // errors that the next block shows
}

func (e *examples) check(t *testing.T, b block) {
	t.Helper()
	file := b.file
	if file == "" {
		file = "mcpx.yaml"
	}
	path := filepath.Join(e.dir, filepath.FromSlash(file))
	switch {
	case b.language == "yml":
		_, err := manifest.Parse(path, []byte(b.text))
		require.Error(t, err, "line %d", b.line)
		e.broken = strings.ReplaceAll(err.Error(), e.dir+string(filepath.Separator), "") + "\n"
	case b.language == "text" && e.broken != "":
		assert.Equal(t, e.broken, b.text, "line %d", b.line)
		e.broken = ""
	case b.language == "text" && strings.HasPrefix(b.text, "! "):
		require.NotNil(t, e.last, "line %d", b.line)
		require.Len(t, e.last.Plans, 1, "line %d", b.line)
		assert.Equal(t, "! "+strings.Join(e.last.Plans[0].Definition.Warnings, "\n! ")+"\n", b.text, "line %d", b.line)
	case b.language == "yaml", b.language == "json" && b.file != "":
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(b.text), 0o600))
		if strings.HasPrefix(b.text, "name: ") {
			return
		}
		m, err := manifest.Parse(path, []byte(b.text))
		require.NoError(t, err, "line %d", b.line)
		e.last = m
		for _, w := range m.Warnings {
			assert.NotEqual(t, manifest.RuleNoPlanFiles, w.Rule, "line %d: %s", b.line, w)
			assert.NotContains(t, b.words, "clean", "line %d: %s", b.line, w)
		}
	}
}

func TestThePlanFilesOfTheExamplesAreRead(t *testing.T) {
	p := read(t, "manifest.md")
	dir := t.TempDir()
	var plans []string
	for _, b := range p.blocks() {
		if b.file == "" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(b.file))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(b.text), 0o600))
		if !strings.Contains(b.text, "planFiles: ") {
			continue
		}
		m, err := manifest.Load(path)
		require.NoError(t, err)
		for _, plan := range m.Plans {
			plans = append(plans, plan.Name)
		}
		assert.Equal(t, "https://tickets.example.com/mcp", m.Servers["tickets"].HTTP.URL, "the including file counts most")
	}
	assert.Equal(t, []string{"greet"}, plans)
}

// The members of every object are what the loader names when it meets one that it does not know.
func TestEveryMemberOfAManifestIsDocumented(t *testing.T) {
	const server = "version: 1\nservers: {a: {http: {url: \"http://127.0.0.1/mcp\"}}}\n"
	p := read(t, "manifest.md")
	for table, text := range map[string]string{
		"top":        "version: 1\nzzzz: 1",
		"defaults":   "version: 1\ndefaults: {zzzz: 1}",
		"agent":      "version: 1\nagents: {a: {plans: [], zzzz: 1}}",
		"server":     "version: 1\nservers: {a: {http: {url: \"http://127.0.0.1/mcp\"}, zzzz: 1}}",
		"http":       "version: 1\nservers: {a: {http: {url: \"http://127.0.0.1/mcp\", zzzz: 1}}}",
		"stdio":      "version: 1\nservers: {a: {stdio: {command: [x], zzzz: 1}}}",
		"webmcp":     "version: 1\nservers: {a: {webmcp: {origin: \"http://localhost\", zzzz: 1}}}",
		"tool":       server + "tools: {a/t: {zzzz: 1}}",
		"inspect":    server + "tools: {a/t: {inspect: {tool: g, present: \"true\", zzzz: 1}}}",
		"compensate": server + "tools: {a/t: {compensate: {tool: d, zzzz: 1}}}",
		"plan":       server + "plans: [{name: p, zzzz: 1, steps: [{id: s, tool: a/t}]}]",
		"approval":   server + "plans: [{name: p, approval: {zzzz: 1}, steps: [{id: s, tool: a/t}]}]",
		"step":       server + "plans: [{name: p, steps: [{id: s, tool: a/t, zzzz: 1}]}]",
	} {
		t.Run(table, func(t *testing.T) {
			_, err := manifest.Parse("mcpx.yaml", []byte(text))
			var problem manifest.Error
			require.ErrorAs(t, err, &problem)
			members, found := strings.CutPrefix(problem.Want, "there are ")
			require.True(t, found, "%v", err)
			assert.ElementsMatch(t, strings.Split(members, ", "), column(t, p.table(t, "members: "+table), 0))
		})
	}
}

func TestTheDefaultsInTheTablesAreThoseOfTheLoader(t *testing.T) {
	m, err := manifest.Parse("mcpx.yaml", []byte("version: 1\nservers: {a: {http: {url: \"http://127.0.0.1/mcp\"}}}\n"+
		"tools: {a/t: {}}\nplans: [{name: p, steps: [{id: s, tool: a/t}]}]"))
	require.NoError(t, err)
	approval := m.Plans[0].Definition.Approval
	p := read(t, "manifest.md")
	says := func(table, member string) string {
		rows := p.table(t, "members: "+table)
		i := slices.Index(column(t, rows, 0), member)
		require.GreaterOrEqual(t, i, 0, "%s: %s", table, member)
		return strings.Trim(rows[i].cell(2), "`")
	}
	short := strings.NewReplacer("h0m0s", "h")
	assert.Equal(t, m.Defaults.Timeout.String(), says("defaults", "timeout"))
	assert.Equal(t, "2", says("defaults", "retries"))
	assert.Equal(t, 2, m.Defaults.Retries)
	assert.Equal(t, short.Replace(m.Defaults.TTL.String()), says("defaults", "ttl"))
	assert.Equal(t, string(m.Unlisted), says("top", "unlisted"))
	assert.Equal(t, string(m.Tools["a/t"].Risk), says("tool", "risk"))
	assert.Equal(t, m.Tools["a/t"].Timeout, m.Tools["a/t"].Settle)
	assert.Equal(t, "timeout", says("tool", "settle"))
	assert.Equal(t, approval.Start, says("approval", "start"))
	assert.Equal(t, "1", says("approval", "quorum"))
	assert.Equal(t, 1, approval.Quorum)
	assert.Equal(t, "false", says("approval", "fourEyes"))
	assert.False(t, approval.FourEyes)
	assert.Equal(t, short.Replace(approval.Expires.String()), says("approval", "expires"))
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names of a page's headings, as hosts of Markdown make them.
func (p page) anchors() []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(p.text, ""), -1) {
		all = append(all, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(p.text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := p
			if target != "" {
				path := filepath.Join(filepath.Dir(p.name), filepath.FromSlash(target))
				if _, err := os.Stat(path); !assert.NoError(t, err, "%s: %s", p.name, m[1]) || anchor == "" {
					continue
				}
				to = read(t, path)
			}
			assert.Contains(t, to.anchors(), anchor, "%s: %s", p.name, m[1])
		}
	}
}

func TestTheLimitsInTheTableAreThoseOfTheCode(t *testing.T) {
	size := map[string]string{}
	for _, r := range read(t, "manifest.md").table(t, "limits") {
		size[r.cell(0)] = r.cell(1)
	}
	const kib, mib = 1 << 10, 1 << 20
	assert.Equal(t, fmt.Sprintf("%d MiB", manifest.MaxDefinition/mib), size["a plan with its contracts"])
	assert.Equal(t, fmt.Sprintf("%d KiB", manifest.MaxInput/kib), size["an input"])
	assert.Equal(t, fmt.Sprintf("%d KiB", contract.ResultLimit/kib), size["a result kept whole"])
	assert.Equal(t, fmt.Sprintf("%d bytes", contract.MaxName), size["the name of a plan or step"])
	assert.Equal(t, fmt.Sprintf("%d KiB", expr.MaxSource/kib), size["a condition"])
}

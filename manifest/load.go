package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// Option changes how a manifest is read.
type Option func(*loader)

// ServerName is the local name of the server whose tools an AgentX manifest describes. Without it the name is the
// file's own serverName, or "agentx".
func ServerName(name string) Option { return func(l *loader) { l.serverName = name } }

// Load reads a manifest with everything that it includes, and checks it. A file that does not exist is an error that
// wraps ErrNoManifest and fs.ErrNotExist; everything that is wrong with the text is an Errors.
func Load(path string, options ...Option) (*Manifest, error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoManifest, path, cause(err))
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", path, cause(err))
	}
	return Parse(path, text, options...)
}

// Parse reads a manifest from its text, YAML or JSON. The name stands in errors; the files that the manifest includes,
// and the directories of its servers, are relative to the name's directory. Its errors are of type Errors.
func Parse(name string, text []byte, options ...Option) (*Manifest, error) {
	return newLoader(options).parse(name, text)
}

func (l *loader) parse(name string, text []byte) (*Manifest, error) {
	doc := l.document(name, text)
	if l.broken {
		return nil, l.err()
	}
	doc.warnings = l.warnings
	return doc.build(nil, l.errors)
}

// document is what the files say, with the entries of included files below those of the file that includes them. Its
// values are not decoded yet.
type document struct {
	file      string
	defaults  []*node // the last one that names a field counts
	unlisted  *node
	approvers []member
	agents    []member
	servers   []member
	tools     []member
	plans     []planSource
	warnings  []Warning
	// replaced are servers given by the program: see Manifest.WithServers.
	replaced map[string]contract.Server
	// standIn is the server that the tools of an AgentX file belong to, and that no entry describes.
	standIn string
}

// planSource is a plan as it stands in a file.
type planSource struct {
	node  *node
	field string
	name  string // from a map of plans; else ""
}

// title is the plan's name, as far as it can be known before it is decoded.
func (s planSource) title() string {
	if s.name != "" {
		return s.name
	}
	if n := s.node.get("name"); n != nil && n.kind == kindText {
		return n.text
	}
	return ""
}

const maxIncludes = 16 // files inside each other

type loader struct {
	*problems
	serverName string
	read       func(path string) ([]byte, error)
	glob       func(pattern string) ([]string, error)
	open       []string // the files that are being read, outermost first
	// broken: a file could not be read, so that what else seems to be missing means nothing.
	broken bool
}

func newLoader(options []Option) *loader {
	l := &loader{problems: &problems{}, read: readFile, glob: filepath.Glob}
	for _, option := range options {
		option(l)
	}
	return l
}

// topFields are the members of a manifest.
var topFields = []string{
	"version", "include", "servers", "defaults", "unlisted", "approvers", "agents", "tools", "plans", "planFiles",
}

// document reads one file, with what it includes. It never returns nil; the problems say whether it can be used.
func (l *loader) document(file string, text []byte) *document {
	doc := &document{file: file}
	root := readText(l.problems, file, text)
	if root == nil {
		l.broken = true
		return doc
	}
	if isAgentX(root) {
		root = l.translate(doc, root)
	}
	known := topFields
	for _, m := range root.members {
		if strings.HasPrefix(m.name, "x-") || m.name == "$schema" {
			known = append(slices.Clone(known), m.name)
		}
	}
	o, ok := l.object(root, "", known...)
	if !ok {
		l.broken = true
		return doc
	}
	l.version(o)
	l.includes(o, doc)
	if o.has("defaults") {
		doc.defaults = append(doc.defaults, o.get("defaults"))
	}
	if o.has("unlisted") {
		doc.unlisted = o.get("unlisted")
	}
	doc.servers = over(doc.servers, o.names("servers"))
	doc.tools = over(doc.tools, o.names("tools"))
	doc.approvers = over(doc.approvers, o.names("approvers"))
	doc.agents = over(doc.agents, o.names("agents"))
	l.plans(o, doc)
	return doc
}

func (l *loader) version(o object) {
	n := o.get("version")
	switch {
	case n == nil:
		l.add(o.node.place, "", `write "version: 1" at the top`, "the version is missing")
	case n.kind != kindNumber || n.text != "1":
		l.add(n.place, "version", "write version: 1", "%s is no version that this program knows", n.describe())
	}
}

// over puts the entries of a file over those of the files that it includes.
func over(below, above []member) []member {
	out := slices.Clone(below)
	for _, m := range above {
		if i := slices.IndexFunc(out, func(b member) bool { return b.name == m.name }); i >= 0 {
			out[i] = m
		} else {
			out = append(out, m)
		}
	}
	return out
}

// includes reads the files that a manifest includes, the first one lowest.
func (l *loader) includes(o object, doc *document) {
	for _, n := range o.list("include", "[../mcpx.yaml]") {
		path := beside(n)
		field := o.in("include")
		if slices.Contains(l.open, path) || path == filepath.Clean(doc.file) {
			l.add(n.place, field, "", "%s includes itself", n.text)
			continue
		}
		if len(l.open) >= maxIncludes {
			l.add(n.place, field, "", "more than %d files include each other", maxIncludes)
			continue
		}
		text, err := l.read(path)
		if err != nil {
			l.add(n.place, field, "", "%s cannot be included: %v", n.text, cause(err))
			l.broken = true
			continue
		}
		l.open = append(l.open, filepath.Clean(doc.file))
		inner := l.document(path, text)
		l.open = l.open[:len(l.open)-1]
		doc.defaults = append(doc.defaults, inner.defaults...)
		if inner.unlisted != nil {
			doc.unlisted = inner.unlisted
		}
		doc.servers = over(doc.servers, inner.servers)
		doc.tools = over(doc.tools, inner.tools)
		doc.approvers = over(doc.approvers, inner.approvers)
		doc.agents = over(doc.agents, inner.agents)
		doc.plans = overPlans(doc.plans, inner.plans)
		if inner.standIn != "" {
			doc.standIn = inner.standIn
		}
	}
}

func overPlans(below, above []planSource) []planSource {
	out := slices.Clone(below)
	for _, s := range above {
		i := slices.IndexFunc(out, func(b planSource) bool { return b.title() != "" && b.title() == s.title() })
		if i >= 0 {
			out[i] = s
		} else {
			out = append(out, s)
		}
	}
	return out
}

// plans collects the plans of a file: inline ones, as a list or by name, and those in files of their own.
func (l *loader) plans(o object, doc *document) {
	var own []planSource
	if n := o.get("plans"); !n.isNull() {
		switch n.kind {
		case kindList:
			for i, item := range n.items {
				s := planSource{node: item, field: indexed("plans", i)}
				if title := s.title(); contract.IsName(title) {
					s.field = joined("plans", title)
				}
				own = append(own, s)
			}
		case kindObject:
			for _, m := range n.members {
				own = append(own, planSource{node: m.value, field: joined("plans", m.name), name: m.name})
			}
		default:
			o.wrong("plans", "write a list of plans, or an object with a name for each")
		}
	}
	for _, n := range o.list("planFiles", "[plans/*.yaml]") {
		own = append(own, l.planFiles(n, o.in("planFiles"))...)
	}
	seen := map[string]place{}
	for _, s := range own {
		title := s.title()
		if first, twice := seen[title]; twice && title != "" {
			l.add(s.node.place, s.field, "", "the plan %q stands twice, first in %s:%d", title, first.file, first.line)
		}
		seen[title] = s.node.place
	}
	doc.plans = overPlans(doc.plans, own)
}

func (l *loader) planFiles(n *node, field string) []planSource {
	pattern := beside(n)
	paths := []string{pattern}
	if strings.ContainsAny(n.text, "*?[") {
		var err error
		if paths, err = l.glob(pattern); err != nil {
			l.add(n.place, field, "such as plans/*.yaml", "%q is no pattern: %v", n.text, err)
			return nil
		}
		if len(paths) == 0 {
			l.warn(n.place, field, RuleNoPlanFiles, "%s matches no file", n.text)
		}
	}
	var out []planSource
	for _, path := range paths {
		text, err := l.read(path)
		if err != nil {
			l.add(n.place, field, "", "%s cannot be read: %v", n.text, cause(err))
			l.broken = true
			continue
		}
		if root := readText(l.problems, path, text); root != nil {
			out = append(out, planSource{node: root})
		} else {
			l.broken = true
		}
	}
	return out
}

// beside is a path relative to the file that names it.
func beside(n *node) string {
	if filepath.IsAbs(n.text) {
		return filepath.Clean(n.text)
	}
	return filepath.Join(filepath.Dir(n.file), filepath.FromSlash(n.text))
}

// readFile reads a file of bounded size; devices and directories are none.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(f, maxText+1)); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// cause is a file error without the path, which the message names already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// EnvManifest is the environment variable that names the manifest.
const EnvManifest = "MCPX_MANIFEST"

// manifestNames are the files that Find looks for, in this order: our own, and those of AgentX.
var manifestNames = []string{
	"mcpx.yaml", "mcpx.yml", "mcpx.json",
	"agentx.config.json", "agentx.json", ".agentx/config.json",
	"agenttx.config.json", "agenttx.json", ".agenttx/config.json",
}

// Find returns the manifest of a directory: the file that MCPX_MANIFEST names, or else the first of mcpx.yaml, mcpx.yml,
// mcpx.json and the names that AgentX uses. The error wraps ErrNoManifest.
func Find(dir string) (string, error) {
	if named := os.Getenv(EnvManifest); named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("%w: %s names %s: %w", ErrNoManifest, EnvManifest, named, cause(err))
		}
		return named, nil
	}
	for _, name := range manifestNames {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	hint := ""
	if entries, err := os.ReadDir(dir); err == nil {
		for _, entry := range entries {
			if best := nearest.Name(entry.Name(), manifestNames[:3]); best != "" {
				hint = fmt.Sprintf("; is %s meant?", entry.Name())
			}
		}
	}
	return "", fmt.Errorf("%w in %s: looked for %s, and %s is not set%s", ErrNoManifest, dir, strings.Join(manifestNames[:4], ", "), EnvManifest, hint)
}

// serverNames are the names of all servers, in order.
func (d *document) serverNames() []string {
	names := map[string]bool{}
	for _, m := range d.servers {
		names[m.name] = true
	}
	for name := range d.replaced {
		names[name] = true
	}
	if d.standIn != "" {
		names[d.standIn] = true
	}
	return slices.Sorted(maps.Keys(names))
}

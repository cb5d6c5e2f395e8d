package manifest

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

// Limits of a file.
const (
	maxText   = 2 << 20 // bytes
	maxDepth  = 100     // values inside each other
	maxValues = 200_000 // values, those of aliases each time; a long text counts for several
	maxMarks  = 1000    // anchors, tags and explicit keys
	maxTokens = 50_000  // of YAML: the time that the parser takes grows with their square
)

// readYAML reads one YAML document into nodes. It returns nil if it cannot be read; p has the reasons then.
func readYAML(p *problems, file string, text []byte) *node {
	r := yamlReader{problems: p, file: file, anchors: map[string]*node{}, open: map[string]bool{}}
	before := len(p.errors)
	root := r.read(string(text))
	if len(p.errors) > before {
		return nil
	}
	return root
}

type yamlReader struct {
	*problems
	file    string
	anchors map[string]*node
	open    map[string]bool // anchors whose value is being read
}

func (r *yamlReader) read(text string) (root *node) {
	defer r.guard()
	tokens, ok := r.tokens(text)
	if !ok {
		return nil
	}
	document := r.parse(tokens)
	if document == nil {
		return nil
	}
	return r.value(document, 0)
}

// guard turns a panic of the YAML library into a problem.
func (r *yamlReader) guard() {
	if cause := recover(); cause != nil {
		r.add(place{file: r.file}, "", "check the indentation and the quotes", "cannot be read as YAML")
	}
}

// tokens splits the text, and refuses what the parser would run out of stack on.
func (r *yamlReader) tokens(text string) (tokens token.Tokens, ok bool) {
	tokens = lexer.Tokenize(text)
	if len(tokens) > maxTokens {
		r.add(place{file: r.file}, "", "put plans into files of their own, or write JSON",
			"the file has %d tokens of YAML, at most %d are allowed", len(tokens), maxTokens)
		return nil, false
	}
	depth, marks := 0, 0
	for _, tk := range tokens {
		const columnsPerLevel = 20
		tooFar := false
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.DocumentHeaderType, token.DocumentEndType:
			depth = 0
		case token.SequenceEntryType:
			tooFar = tk.Position.Column > maxDepth*columnsPerLevel
		case token.AnchorType, token.TagType, token.MappingKeyType:
			marks++
		}
		if depth > maxDepth || tooFar {
			r.add(r.at(tk), "", "", "values are nested too deeply: at most %d inside each other", maxDepth)
			return nil, false
		}
		if marks > maxMarks {
			r.add(r.at(tk), "", "", "the file has more than %d anchors, tags and explicit keys", maxMarks)
			return nil, false
		}
	}
	return tokens, true
}

// parse returns the body of the one document.
func (r *yamlReader) parse(tokens token.Tokens) ast.Node {
	file := r.syntaxTree(tokens)
	if file == nil {
		return nil
	}
	var bodies []*ast.DocumentNode
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); doc.Body != nil && !directive {
			bodies = append(bodies, doc)
		}
	}
	switch len(bodies) {
	case 0:
		r.add(place{file: r.file, line: 1, column: 1}, "", `begin with "version: 1"`, "the file is empty")
		return nil
	case 1:
		return bodies[0].Body
	}
	at := place{file: r.file}
	if start := bodies[1].Start; start != nil {
		at = r.at(start)
	}
	r.add(at, "", "put every plan into a file of its own, and name it in planFiles", "a second document begins here: a file holds one")
	return nil
}

func (r *yamlReader) syntaxTree(tokens token.Tokens) *ast.File {
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}
	at, message := place{file: r.file}, err.Error()
	var located yaml.Error
	if errors.As(err, &located) {
		message = located.GetMessage()
		if tk := located.GetToken(); tk != nil {
			at = r.at(tk)
		}
	}
	want := ""
	if strings.Contains(message, "'\t'") {
		message, want = "a tab cannot indent", "use spaces"
	}
	r.add(at, "", want, "cannot be read as YAML: %s", message)
	return nil
}

func (r *yamlReader) at(tk *token.Token) place {
	if tk == nil || tk.Position == nil {
		return place{file: r.file}
	}
	return place{file: r.file, line: tk.Position.Line, column: tk.Position.Column}
}

// value turns a YAML node into ours. It never returns nil: what cannot be read is null, with a problem.
func (r *yamlReader) value(n ast.Node, depth int) *node {
	out := &node{place: r.at(n.GetToken()), kind: kindNull, size: 1}
	if depth > maxDepth {
		r.add(out.place, "", "", "values are nested too deeply: at most %d inside each other", maxDepth)
		return out
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		r.plain(out, n.GetToken())
	case *ast.StringNode:
		r.text(out, n)
	case *ast.LiteralNode:
		out.kind, out.text = kindText, n.Value.Value
	case *ast.SequenceNode:
		out.kind = kindList
		for _, item := range n.Values {
			inner := r.value(item, depth+1)
			r.grow(out, inner)
			out.items = append(out.items, inner)
		}
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			out.place = r.at(n.Values[0].Key.GetToken())
		}
		r.object(out, n.Values, depth)
	case *ast.MappingValueNode:
		out.place = r.at(n.Key.GetToken())
		r.object(out, []*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode:
		return r.anchor(n, depth)
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		r.add(out.place, "", "quote what is meant as text, and write numbers plainly", "tags such as %s are not supported", n.GetToken().Value)
	default:
		r.add(out.place, "", "", "a %s cannot stand here", strings.ToLower(n.Type().String()))
	}
	return out
}

// grow counts the values of a container. Every 32 bytes of a text count for one.
func (r *yamlReader) grow(out, inner *node) {
	if out.size > maxValues {
		return
	}
	out.size += len(inner.text) / 32
	if out.size += inner.size; out.size > maxValues && inner.size <= maxValues {
		r.add(out.place, "", "", "the value is too large with its aliases: more than %d values", maxValues)
	}
}

func (r *yamlReader) text(out *node, n *ast.StringNode) {
	tk := n.GetToken()
	if tk.Type != token.SingleQuoteType && tk.Type != token.DoubleQuoteType {
		r.plain(out, tk)
		return
	}
	out.kind, out.text = kindText, n.Value
	if inner := strings.TrimSpace(tk.Origin); len(inner) >= 2 && inner[1:len(inner)-1] == n.Value {
		out.textColumn = out.column + 1
	}
	if !utf8.ValidString(n.Value) || strings.ContainsRune(n.Value, utf8.RuneError) && !strings.ContainsRune(tk.Origin, utf8.RuneError) {
		r.add(out.place, "", "", "the text holds an escape that is no character, such as half of a surrogate pair")
	}
}

// plain reads a scalar without quotes.
func (r *yamlReader) plain(out *node, tk *token.Token) {
	s := scalar(tk.Value, isNumberToken(tk))
	out.kind, out.text = s.kind, s.text
	if s.problem != "" {
		r.add(out.place, "", s.want, "%s", s.problem)
	}
	if s.kind == kindText && !strings.Contains(strings.TrimSpace(tk.Origin), "\n") {
		out.textColumn = out.column
	}
}

func isNumberToken(tk *token.Token) bool {
	switch tk.Type {
	case token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.FloatType,
		token.InfinityType, token.NanType:
		return true
	}
	return false
}

func (r *yamlReader) object(out *node, values []*ast.MappingValueNode, depth int) {
	out.kind = kindObject
	names := make(map[string]int, len(values)) // to the line
	var merged []*node
	for _, pair := range values {
		if pair.Key.IsMergeKey() {
			merged = append(merged, r.merges(pair, depth)...)
			continue
		}
		name, at, ok := r.key(pair.Key)
		value := r.value(pair.Value, depth+1)
		if !ok {
			continue
		}
		if line, twice := names[name]; twice {
			r.add(at, "", "keep one of them", "%q stands twice in this object, first in line %d", name, line)
			continue
		}
		names[name] = at.line
		r.grow(out, value)
		out.members = append(out.members, member{place: at, name: name, value: value})
	}
	for _, from := range merged {
		for _, m := range from.members {
			if _, own := names[m.name]; !own {
				names[m.name] = m.line
				r.grow(out, m.value)
				out.members = append(out.members, m)
			}
		}
	}
}

// merges reads the value of a merge key <<: an alias to an object, or a list of such.
func (r *yamlReader) merges(pair *ast.MappingValueNode, depth int) []*node {
	value := r.value(pair.Value, depth+1)
	from := []*node{value}
	if value.kind == kindList {
		from = value.items
	}
	for _, n := range from {
		if n.kind != kindObject {
			r.add(r.at(pair.Key.GetToken()), "", "write <<: *name, or <<: [*one, *two]; quote \"<<\" for a member of that name",
				"<< merges objects, and this is %s", n.describe())
			return nil
		}
	}
	return from
}

// key reads the name of a member.
func (r *yamlReader) key(key ast.MapKeyNode) (name string, at place, ok bool) {
	at = r.at(key.GetToken())
	var n ast.Node = key
	if explicit, is := n.(*ast.MappingKeyNode); is {
		if n = explicit.Value; n == nil {
			r.add(at, "", "", "the name of the member is missing")
			return "", at, false
		}
		at = r.at(n.GetToken())
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, at, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, at, true
	case *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		r.add(at, "", "quote it", "the name of a member cannot be %s", n.GetToken().Value)
	default:
		r.add(at, "", "", "the name of a member must be a text")
	}
	return "", at, false
}

func (r *yamlReader) anchor(n *ast.AnchorNode, depth int) *node {
	name := n.Name.GetToken().Value
	if n.Value == nil {
		return &node{place: r.at(n.GetToken()), kind: kindNull, size: 1}
	}
	outer := r.open[name]
	r.open[name] = true
	value := r.value(n.Value, depth)
	r.open[name] = outer
	r.anchors[name] = value
	return value
}

func (r *yamlReader) alias(n *ast.AliasNode) *node {
	at := r.at(n.GetToken())
	missing := &node{place: at, kind: kindNull, size: 1}
	if n.Value == nil {
		r.add(at, "", "", "the name of the alias is missing")
		return missing
	}
	name := n.Value.GetToken().Value
	if r.open[name] {
		r.add(at, "", "", "the alias *%s refers to the value that it stands in", name)
		return missing
	}
	value := r.anchors[name]
	if value == nil {
		known := make([]string, 0, len(r.anchors))
		for anchor := range r.anchors {
			known = append(known, anchor)
		}
		r.add(at, "", nearest.Hint(name, known), "there is no anchor &%s before this alias", name)
		return missing
	}
	return value
}

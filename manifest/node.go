package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
)

// kind is what a node is. The words are those that errors use.
type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "a boolean"
	kindNumber kind = "a number"
	kindText   kind = "a text"
	kindList   kind = "a list"
	kindObject kind = "an object"
)

// node is a value as it stands in a file, YAML or JSON, with its place. Numbers are exact: they are kept as JSON text.
// Nodes are never changed once they are read; an alias shares the node of its anchor.
type node struct {
	place
	kind kind
	// text of a text, JSON text of a number, "true" or "false".
	text string
	// textColumn is the column at which the text itself begins, where each character of it is one of the file; else 0.
	textColumn int
	items      []*node
	members    []member
	// size counts the values in it, shared ones each time; see yamlReader.grow.
	size int
}

// member is one member of an object.
type member struct {
	place
	name  string
	value *node
	// shown is the name under which errors speak of it, where that is not its name.
	shown string
}

// title is the name under which errors speak of the member.
func (m member) title() string {
	if m.shown != "" {
		return m.shown
	}
	return m.name
}

// get returns the member of that name, or nil.
func (n *node) get(name string) *node {
	if m := n.member(name); m != nil {
		return m.value
	}
	return nil
}

func (n *node) member(name string) *member {
	if n == nil || n.kind != kindObject {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return &n.members[i]
		}
	}
	return nil
}

// isNull tells whether a value is missing or null.
func (n *node) isNull() bool { return n == nil || n.kind == kindNull }

// describe names the value in errors.
func (n *node) describe() string {
	const most = 40
	switch n.kind {
	case kindNull:
		return "empty"
	case kindBool, kindNumber:
		return clip(n.text, most)
	case kindText:
		return fmt.Sprintf("the text %q", clip(n.text, most))
	}
	return string(n.kind)
}

// clip shortens a text for a message.
func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// json is the value as exact JSON, members in the order of the file.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.appendJSON(&b)
	return b.Bytes()
}

func (n *node) appendJSON(b *bytes.Buffer) {
	switch n.kind {
	case kindNull:
		b.WriteString("null")
	case kindText:
		b.Write(quote(n.text))
	case kindList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.appendJSON(b)
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quote(m.name))
			b.WriteByte(':')
			m.value.appendJSON(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString(n.text)
	}
}

// quote writes a JSON string, leaving <, > and & as they are.
func quote(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// texts visits every text in the value, with its field.
func (n *node) texts(field string, visit func(text *node, field string)) {
	switch n.kind {
	case kindText:
		visit(n, field)
	case kindList:
		for i, item := range n.items {
			item.texts(indexed(field, i), visit)
		}
	case kindObject:
		for _, m := range n.members {
			m.value.texts(joined(field, m.name), visit)
		}
	}
}

// at follows JSON Pointer tokens as far as they lead, and tells the field that it arrived at.
func (n *node) at(tokens []string, field string) (*node, string) {
	for _, token := range tokens {
		switch n.kind {
		case kindObject:
			inner := n.get(token)
			if inner == nil {
				return n, field
			}
			n, field = inner, joined(field, token)
		case kindList:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n.items) {
				return n, field
			}
			n, field = n.items[i], indexed(field, i)
		default:
			return n, field
		}
	}
	return n, field
}

// joined is the field of a member.
func joined(field, name string) string {
	text := contract.ElemsString([]contract.Elem{{Member: name}})
	switch {
	case field == "":
		return text
	case strings.HasPrefix(text, "["):
		return field + text
	}
	return field + "." + text
}

// indexed is the field of an item.
func indexed(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

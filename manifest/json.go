package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// isJSON tells whether a file is to be read as JSON: by its name, or because it is an object of JSON whatever its name.
func isJSON(file string, text []byte) bool {
	if strings.EqualFold(filepath.Ext(file), ".json") {
		return true
	}
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] == '{' && jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
}

// readJSON reads one JSON value into nodes; nil if it cannot be read.
func readJSON(p *problems, file string, text []byte) *node {
	r := jsonReader{problems: p, file: file, cursor: cursor{text: text}}
	// Duplicates are found here, so that all of them are named.
	r.dec = jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	before := len(p.errors)
	root, err := r.value(0)
	if err == nil {
		if _, err = r.dec.ReadToken(); err == nil {
			r.add(r.here(), "", "", "something follows the value")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		r.fail(err)
	}
	if len(p.errors) > before {
		return nil
	}
	return root
}

type jsonReader struct {
	*problems
	file string
	dec  *jsontext.Decoder
	cursor
}

// here is the place of the token that was read last.
func (r *jsonReader) here() place { return r.placeOf(int(r.dec.InputOffset())) }

func (r *jsonReader) placeOf(offset int) place {
	line, column := r.cursor.to(offset)
	return place{r.file, line, column}
}

// next reads a token with the place where it begins.
func (r *jsonReader) next() (jsontext.Token, place, error) {
	start := int(r.dec.InputOffset())
	token, err := r.dec.ReadToken()
	if err != nil {
		return token, place{}, err
	}
	for start < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[start]) >= 0 {
		start++
	}
	return token, r.placeOf(start), nil
}

func (r *jsonReader) fail(err error) {
	at, message := r.here(), err.Error()
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		at, message = r.placeOf(len(r.text)), "the text ends before the value does"
	case errors.As(err, &syntactic):
		at, message = r.placeOf(int(syntactic.ByteOffset)), syntactic.Err.Error()
	}
	r.add(at, "", "", "cannot be read as JSON: %s", message)
}

func (r *jsonReader) value(depth int) (*node, error) {
	token, at, err := r.next()
	if err != nil {
		return nil, err
	}
	out := &node{place: at, kind: kindNull, size: 1}
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested too deeply: at most %d inside each other", maxDepth)
	}
	switch token.Kind() {
	case 't', 'f':
		out.kind, out.text = kindBool, token.String()
	case '"':
		out.kind, out.text = kindText, token.String()
		if raw := r.text[:r.dec.InputOffset()]; bytes.HasSuffix(raw, []byte(`"`+out.text+`"`)) {
			out.textColumn = at.column + 1
		}
	case '0':
		s := jsonNumber(token.String())
		if out.kind, out.text = s.kind, s.text; s.problem != "" {
			r.add(at, "", s.want, "%s", s.problem)
		}
	case '[':
		out.kind = kindList
		for r.dec.PeekKind() != ']' {
			item, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
			out.size += item.size
		}
		_, _, err = r.next()
	case '{':
		out.kind = kindObject
		err = r.members(out, depth)
	}
	return out, err
}

func (r *jsonReader) members(out *node, depth int) error {
	names := map[string]int{} // to the line
	for r.dec.PeekKind() != '}' {
		token, at, err := r.next()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if line, twice := names[name]; twice {
			r.add(at, "", "keep one of them", "%q stands twice in this object, first in line %d", name, line)
			continue
		}
		names[name] = at.line
		out.members = append(out.members, member{place: at, name: name, value: value})
		out.size += value.size
	}
	_, _, err := r.next()
	return err
}

package manifest

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// readText reads a file of either format into nodes; nil if it cannot be read.
func readText(p *problems, file string, text []byte) *node {
	at := place{file: file}
	if len(text) > maxText {
		p.add(at, "", "", "the file has %d bytes, at most %d are allowed", len(text), maxText)
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		line, column := lineAndColumn(text, invalidAt(text))
		p.add(place{file, line, column}, "", "save the file as UTF-8", "the file is not UTF-8")
		return nil
	}
	if i := bytes.IndexFunc(text, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f }); i >= 0 {
		line, column := lineAndColumn(text, i)
		p.add(place{file, line, column}, "", "", "the control character %s cannot stand in the file", fmt.Sprintf("U+%04X", text[i]))
		return nil
	}
	if isJSON(file, text) {
		return readJSON(p, file, text)
	}
	return readYAML(p, file, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
}

func invalidAt(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// lineAndColumn of a byte offset, from 1, columns in characters.
func lineAndColumn(text []byte, offset int) (line, column int) {
	c := cursor{text: text}
	return c.to(offset)
}

// cursor finds lines and columns of byte offsets; offsets in rising order are found without starting anew.
type cursor struct {
	text                 []byte
	offset, line, column int // line and column from 0
}

func (c *cursor) to(offset int) (line, column int) {
	offset = min(max(offset, 0), len(c.text))
	if offset < c.offset {
		c.offset, c.line, c.column = 0, 0, 0
	}
	between := c.text[c.offset:offset]
	if last := bytes.LastIndexByte(between, '\n'); last >= 0 {
		c.line += bytes.Count(between, []byte("\n"))
		c.column, between = 0, between[last+1:]
	}
	c.column += utf8.RuneCount(between)
	c.offset = offset
	return c.line + 1, c.column + 1
}

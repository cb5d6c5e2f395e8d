package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page is one page of documentation.
type page struct {
	name, text string
}

// pages are those of this directory and the README of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []page
	for _, file := range append(files, filepath.Join("..", "README.md")) {
		all = append(all, read(t, file))
	}
	return all
}

func read(t *testing.T, file string) page {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return page{file, string(text)}
}

// block is a fenced block: ```language file words…
type block struct {
	language, file string
	words          []string
	text           string
	line           int
}

// blocks are the fenced blocks of a page, in order.
func (p page) blocks() []block {
	var all []block
	var open *block
	for i, line := range strings.Split(p.text, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 1}
			if fields := strings.Fields(info); len(fields) > 0 {
				open.language, open.words = fields[0], fields[1:]
			}
			if len(open.words) > 0 {
				open.file, open.words = open.words[0], open.words[1:]
			}
		case fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return all
}

// section is the text under a heading, up to the next one of its level.
func (p page) section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(p.text, "\n"+heading+"\n")
	require.True(t, found, "%s has no heading %q", p.name, heading)
	level, _, _ := strings.Cut(heading, " ")
	text, _, _ := strings.Cut(rest, "\n"+level+" ")
	return text
}

// row is one row of a table.
type row []string

// table is the one that follows a marker <!-- name -->, without its header; where several have the name, their rows one
// after another.
func (p page) table(t *testing.T, name string) []row {
	t.Helper()
	_, rest, found := strings.Cut(p.text, "<!-- "+name+" -->\n")
	require.True(t, found, "%s has no table marked %q", p.name, name)
	var rows []row
	for found {
		for i, line := range strings.Split(rest, "\n") {
			if !strings.HasPrefix(line, "|") {
				break
			}
			if i > 1 {
				rows = append(rows, cells(line))
			}
		}
		_, rest, found = strings.Cut(rest, "<!-- "+name+" -->\n")
	}
	require.NotEmpty(t, rows, "%s: the table marked %q", p.name, name)
	return rows
}

// cells splits a row; \| stands for the character itself.
func cells(line string) row {
	const bar = "\x00"
	line = strings.ReplaceAll(strings.Trim(line, "| "), `\|`, bar)
	var r row
	for cell := range strings.SplitSeq(line, "|") {
		r = append(r, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return r
}

// cell is the text of a cell, "" where the row ends before.
func (r row) cell(i int) string {
	if i < len(r) {
		return r[i]
	}
	return ""
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// codes are the texts of the code spans in a text.
func codes(text string) []string {
	var all []string
	for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all = append(all, m[1])
	}
	return all
}

// code is the only code span of a cell.
func (r row) code(t *testing.T, i int) string {
	t.Helper()
	found := codes(r.cell(i))
	require.Len(t, found, 1, "%q", r.cell(i))
	return found[0]
}

// column are the code spans of a column, one in each row.
func column(t *testing.T, rows []row, i int) []string {
	t.Helper()
	var all []string
	for _, r := range rows {
		all = append(all, r.code(t, i))
	}
	return all
}

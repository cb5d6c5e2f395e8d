package screen

import (
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/lipgloss/table"
	"github.com/charmbracelet/x/ansi"
)

// gap is the number of cells between two columns, flexMin the least a column that wraps is worth having.
const (
	gap     = 2
	flexMin = 20
)

// Column is a column of a table.
type Column struct {
	Title string
	// Wrap: where the table is too wide this column is wrapped.
	Wrap bool
}

// Cell is one cell of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text is a cell in the plain tone.
func Text(text string) Cell { return Cell{Text: text} }

// Table lays rows out under columns. Cells are cleaned. Columns are as wide as their widest cell; where that is wider
// than the screen, the columns that wrap share what the others leave, and where they leave too little the rows are
// written one below the other.
func (s *Screen) Table(columns []Column, rows [][]Cell) string {
	texts, widths := cleaned(columns, rows)
	if limit := s.Width(); limit > 0 && !fit(columns, widths, limit) {
		return s.records(columns, rows, texts, limit)
	}
	for _, row := range texts {
		for i, text := range row {
			row[i] = wrap(text, widths[i])
		}
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.Title
	}
	t := table.New().Headers(titles...).Rows(texts...).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderHeader(false).BorderColumn(false).BorderRow(false).
		StyleFunc(func(row, col int) lipgloss.Style {
			style := s.style(Faint)
			if row >= 0 {
				style = s.style(rows[row][col].Tone)
			}
			return style.Width(widths[col] + gap).MaxWidth(widths[col] + gap)
		})
	return trimLines(t.String())
}

// cleaned is the text of every cell, and the natural width of every column.
func cleaned(columns []Column, rows [][]Cell) (texts [][]string, widths []int) {
	widths = make([]int, len(columns))
	for i, c := range columns {
		widths[i] = max(1, ansi.StringWidth(c.Title))
	}
	for _, row := range rows {
		line := make([]string, len(columns))
		for i := range columns {
			line[i] = Clean(row[i].Text)
			widths[i] = max(widths[i], ansi.StringWidth(line[i]))
		}
		texts = append(texts, line)
	}
	return texts, widths
}

// fit narrows the columns that wrap until the table fits. False: it cannot be made to.
func fit(columns []Column, widths []int, limit int) bool {
	total, flexible := gap*(len(columns)-1), 0
	for i, c := range columns {
		total += widths[i]
		if c.Wrap {
			flexible++
		}
	}
	for total > limit && flexible > 0 {
		widest := -1
		for i, c := range columns {
			if c.Wrap && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widths[widest] <= flexMin {
			break
		}
		widths[widest]--
		total--
	}
	return total <= limit
}

// records writes every row as a block of lines, one for each cell that holds something.
func (s *Screen) records(columns []Column, rows [][]Cell, texts [][]string, limit int) string {
	titles := 0
	for _, c := range columns {
		titles = max(titles, ansi.StringWidth(c.Title))
	}
	var b strings.Builder
	for r, row := range texts {
		if r > 0 {
			b.WriteByte('\n')
		}
		for i, text := range row {
			if text == "" {
				continue
			}
			indent := strings.Repeat(" ", titles+gap)
			wrapped := wrap(text, max(limit-titles-gap, flexMin))
			for n, line := range strings.Split(wrapped, "\n") {
				head := indent
				if n == 0 {
					pad := strings.Repeat(" ", len(indent)-ansi.StringWidth(columns[i].Title))
					head = s.Paint(Faint, columns[i].Title) + pad
				}
				b.WriteString(head + s.Paint(rows[r][i].Tone, line) + "\n")
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Wrap breaks text into lines that fit after an indentation of so many spaces, which the lines after the first get. The
// text may be painted.
func (s *Screen) Wrap(text string, indent int) string {
	limit := s.Width()
	if limit == 0 {
		return text
	}
	wrapped := wrap(text, max(limit-indent, flexMin))
	return strings.ReplaceAll(wrapped, "\n", "\n"+strings.Repeat(" ", indent))
}

// Cells is how many cells text takes on a screen. The text may be painted.
func Cells(text string) int { return ansi.StringWidth(text) }

// wrap breaks text at spaces into lines of so many cells, and words that are longer than that inside. The library's own
// wrapping at spaces lets some lines with wide characters grow too long, so they are cut to size afterwards.
func wrap(text string, limit int) string {
	return ansi.Hardwrap(ansi.Wrap(text, limit, ""), limit, true)
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

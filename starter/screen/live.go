package screen

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Live is a part of a terminal that is drawn anew while something goes on.
type Live struct {
	screen *Screen
	lines  int
}

// Live begins a live part at the cursor. It makes sense on a terminal only.
func (s *Screen) Live() *Live { return &Live{screen: s} }

// Draw replaces what was drawn before by text. Text that is higher than the terminal loses its last lines: a terminal
// cannot take back what has scrolled away.
func (l *Live) Draw(text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	width, height := l.screen.size()
	if height > 2 && len(lines) > height-1 {
		left := len(lines) - (height - 2)
		lines = append(lines[:height-2], fmt.Sprintf("… %d more lines", left))
	}
	if width > 0 {
		for i, line := range lines {
			lines[i] = ansi.Truncate(line, width, "…")
		}
	}
	var b strings.Builder
	l.erase(&b)
	b.WriteString(strings.Join(lines, "\n") + "\n")
	fmt.Fprint(l.screen.Writer, b.String())
	l.lines = len(lines)
}

// Clear removes what was drawn.
func (l *Live) Clear() {
	var b strings.Builder
	l.erase(&b)
	fmt.Fprint(l.screen.Writer, b.String())
	l.lines = 0
}

func (l *Live) erase(b *strings.Builder) {
	if l.lines > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r\x1b[J", l.lines)
	}
}

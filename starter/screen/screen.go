// Package screen puts text on a terminal, or on whatever stands in for one: colours where they are wanted, tables that
// fit, a part that is drawn anew while something goes on, and text from elsewhere made harmless.
package screen

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/term"
	"github.com/muesli/termenv"
)

// Tone is what a colour is to say.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Bold
	Faint
	Good  // done, proven
	Busy  // going on
	Doubt // not known
	Wait  // a human must act
	Bad   // failed
	Mark  // to be seen: names, commands
)

var colours = map[Tone]lipgloss.TerminalColor{
	Good: lipgloss.ANSIColor(2), Busy: lipgloss.ANSIColor(6), Doubt: lipgloss.ANSIColor(3),
	Wait: lipgloss.ANSIColor(5), Bad: lipgloss.ANSIColor(1), Mark: lipgloss.ANSIColor(4),
}

// Screen is where people read. The zero value is not usable: see New and Plainly.
type Screen struct {
	io.Writer
	sink     *sink
	renderer *lipgloss.Renderer
	file     term.File // nil where it is no terminal
	width    int       // where it is no terminal; 0: no limit
}

// New makes a screen of w. Colours are used on a terminal, unless NO_COLOR is set (https://no-color.org); the width is
// the terminal's, and has no limit elsewhere.
func New(w io.Writer) *Screen {
	s := onto(w)
	if file, ok := w.(*os.File); ok && term.IsTerminal(file.Fd()) {
		s.file = file
	}
	return s
}

// Plainly makes a screen without colours and with the given width in cells; 0: no limit.
func Plainly(w io.Writer, width int) *Screen {
	s := onto(w)
	s.width = width
	s.renderer.SetColorProfile(termenv.Ascii)
	return s
}

func onto(w io.Writer) *Screen {
	sink := &sink{to: w}
	return &Screen{Writer: sink, sink: sink, renderer: lipgloss.NewRenderer(w)}
}

// sink remembers the first write that failed: what is shown is written in many places, and looked after in one.
type sink struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}

// Failed is the error of the first write that failed, nil where none did.
func (s *Screen) Failed() error {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return s.sink.err
}

// Terminal tells whether a person is likely to look at the screen right now.
func (s *Screen) Terminal() bool { return s.file != nil }

// Width is the width in cells at this moment, 0 where there is no limit.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

func (s *Screen) size() (width, height int) {
	if s.file == nil {
		return s.width, 0
	}
	width, height, err := term.GetSize(s.file.Fd())
	if err != nil {
		return 0, 0
	}
	return width, height
}

// Print writes text and a line break.
func (s *Screen) Print(text string) { fmt.Fprintln(s.Writer, text) }

// Printf formats and writes text and a line break.
func (s *Screen) Printf(format string, args ...any) { s.Print(fmt.Sprintf(format, args...)) }

// Paint gives text a tone. The text must be clean.
func (s *Screen) Paint(tone Tone, text string) string {
	if tone == Plain || text == "" {
		return text
	}
	return s.style(tone).Render(text)
}

func (s *Screen) style(tone Tone) lipgloss.Style {
	style := s.renderer.NewStyle()
	switch tone {
	case Plain:
	case Bold:
		style = style.Bold(true)
	case Faint:
		style = style.Faint(true)
	default:
		style = style.Foreground(colours[tone])
	}
	return style
}

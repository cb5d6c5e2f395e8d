package screen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/starter/screen"
)

func TestHostileTextIsShownAsText(t *testing.T) {
	for _, test := range []struct{ name, text, shown string }{
		{"plain", "database acme-db", "database acme-db"},
		{"other scripts", "Zürich 東京 🙂", "Zürich 東京 🙂"},
		{"joined emoji", "👩‍💻", "👩‍💻"},
		{"colour", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"title", "\x1b]0;owned\x07", `\x1b]0;owned\x07`},
		{"eight-bit escape", "\u009b31m", `\u009b31m`},
		{"backspaces", "yes\b\b\bno", `yes\x08\x08\x08no`},
		{"another line", "fine\nCOMMITTED", "fine COMMITTED"},
		{"the line again", "fine\rfail", "fine fail"},
		{"tab", "a\tb", "a b"},
		{"reordered", "safe\u202etxt", `safe\u202etxt`},
		{"isolated", "a\u2066b", `a\u2066b`},
		{"hidden", "a\u200bb\ufeffc\u00add", `a\u200bb\ufeffc\u00add`},
		{"tag characters", "a\U000e0041", `a\U000e0041`},
		{"no UTF-8", "a\xffb", `a\xffb`},
		{"a replacement character", "a\uFFFDb", "a\uFFFDb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.shown, screen.Clean(test.text))
		})
	}
}

func TestCleanTextIsOneLineWithoutControls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		})).Draw(t, "text")
		clean := screen.Clean(text)
		require.True(t, utf8.ValidString(clean))
		require.False(t, strings.ContainsAny(clean, "\n\r\t\x1b\a\b\x7f\u009b\u202e\u2028"))
		require.Equal(t, clean, ansi.Strip(clean))
		require.Equal(t, clean, screen.Clean(clean), "cleaning again changes nothing")
	})
}

func TestLongTextIsCutAtACharacter(t *testing.T) {
	clean := screen.Clean(strings.Repeat("é", 10_000))
	require.LessOrEqual(t, len(clean), 8<<10)
	require.True(t, strings.HasSuffix(clean, "é…"))
}

func TestLaterLinesCannotPassForTheFirst(t *testing.T) {
	require.Equal(t, "it failed:\n  mcpx: COMMITTED\n  at \\x1b[2J", screen.CleanLines("it failed:\nmcpx: COMMITTED\r\n  at \x1b[2J\n"))
}

func TestCleanJSONKeepsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.Rune()).Draw(t, "text")
		text, err := json.MarshalIndent(map[string]string{"v": value}, "", "  ")
		require.NoError(t, err)
		clean := screen.CleanJSON(text)
		require.NotContains(t, string(clean), "\u009b")
		require.NotContains(t, string(clean), "\u202e")
		require.NotContains(t, string(clean), "\x7f")
		require.JSONEq(t, string(text), string(clean))
	})
}

func TestWordsAreQuotedForTheShell(t *testing.T) {
	for _, test := range []struct{ word, quoted string }{
		{"provision-workspace/4f2a", "provision-workspace/4f2a"},
		{"", "''"},
		{"two words", "'two words'"},
		{"it's", `'it'\''s'`},
		{"x; rm -rf ~", "'x; rm -rf ~'"},
		{"$(id)", "'$(id)'"},
		{"a\x1b[31m'\\b", `$'a\033[31m\'\\b'`},
	} {
		require.Equal(t, test.quoted, screen.Shell(test.word))
	}
}

func TestQuotedWordsReachAProgramUnchanged(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	words := []string{"plain", "", "two words", "it's", "$(id) `id` \"x\" \\", "a\x1b[31m'\\b\n\t\u202e", "naïve 東京", "\xff\xfe"}
	for _, word := range words {
		out, err := exec.Command(bash, "-c", "printf %s "+screen.Shell(word)).Output()
		require.NoError(t, err)
		require.Equal(t, word, string(out))
	}
}

var columns = []screen.Column{{Title: "STEP"}, {Title: "STATE"}, {Title: "WHY", Wrap: true}}

func rows(texts ...[3]string) (rows [][]screen.Cell) {
	for _, t := range texts {
		rows = append(rows, []screen.Cell{screen.Text(t[0]), {Text: t[1], Tone: screen.Good}, screen.Text(t[2])})
	}
	return rows
}

func table(width int, rows [][]screen.Cell) string {
	return screen.Plainly(&bytes.Buffer{}, width).Table(columns, rows)
}

func TestColumnsAlignWhateverTheScript(t *testing.T) {
	text := table(0, rows([3]string{"データ", "COMMITTED", "a"}, [3]string{"naïve", "FAILED", "b"}, [3]string{"🙂", "", "c"}))
	for line := range strings.Lines(text) {
		head := ansi.Truncate(strings.TrimRight(line, "\n"), 19, "")
		require.Equal(t, 19, ansi.StringWidth(head), "%q", line)
	}
	require.Equal(t, ""+
		"STEP    STATE      WHY\n"+
		"データ  COMMITTED  a\n"+
		"naïve   FAILED     b\n"+
		"🙂                 c", text)
}

func TestLongReasonsWrapInTheirColumn(t *testing.T) {
	text := table(50, rows([3]string{"routing", "IN_DOUBT", "the connection was closed before an answer came, so the owner is asked"}))
	require.Equal(t, ""+
		"STEP     STATE     WHY\n"+
		"routing  IN_DOUBT  the connection was closed\n"+
		"                   before an answer came, so the\n"+
		"                   owner is asked", text)
}

func TestANarrowScreenGetsRecords(t *testing.T) {
	text := table(30, rows([3]string{"routing", "IN_DOUBT", "the owner is being asked"}, [3]string{"frontend", "PENDING", ""}))
	require.Equal(t, ""+
		"STEP   routing\n"+
		"STATE  IN_DOUBT\n"+
		"WHY    the owner is being\n"+
		"       asked\n"+
		"\n"+
		"STEP   frontend\n"+
		"STATE  PENDING", text)
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(40, 160).Draw(t, "width")
		word := rapid.StringOfN(rapid.RuneFrom([]rune("ab é東🙂\x1b\n")), 0, 20, -1)
		long := rapid.StringOfN(rapid.RuneFrom([]rune("abc é東🙂\u202e")), 0, 300, -1)
		var data [][3]string
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			data = append(data, [3]string{word.Draw(t, "step"), "COMMITTED", long.Draw(t, "why")})
		}
		for line := range strings.Lines(table(width, rows(data...))) {
			require.LessOrEqual(t, ansi.StringWidth(strings.TrimRight(line, "\n")), max(width, 40), "%q", line)
		}
	})
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out)
	require.False(t, s.Terminal())
	require.Equal(t, "COMMITTED", s.Paint(screen.Good, "COMMITTED"))
	require.Zero(t, s.Width())
}

func TestALivePartReplacesWhatItDrew(t *testing.T) {
	var out bytes.Buffer
	live := screen.Plainly(&out, 10).Live()
	live.Draw("one\ntwo\n")
	live.Draw("0123456789abc")
	live.Clear()
	require.Equal(t, "one\ntwo\n"+"\x1b[2A\r\x1b[J"+"012345678…\n"+"\x1b[1A\r\x1b[J", out.String())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAFailedWriteIsRemembered(t *testing.T) {
	s := screen.Plainly(full{}, 0)
	require.NoError(t, s.Failed())
	s.Print("lost")
	require.ErrorContains(t, s.Failed(), "no space left")
}

package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cellLimit bounds, in bytes, what one piece of text may put on a screen: text without width (combining marks) could
// otherwise go on for ever.
const cellLimit = 8 << 10

// Clean makes text that comes from elsewhere harmless and one line long: what tools answer, what people give as
// reasons, names. Control characters, escape sequences, and characters that reorder or hide others are shown as Go
// writes them (\x1b, \u202e); line breaks and tabs become spaces; bytes that are no UTF-8 are shown as \xff. Text
// longer than 8 KiB is cut.
func Clean(text string) string {
	text = cut(text, cellLimit)
	if harmless(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !printable(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// CleanLines is Clean for text of several lines: every line after the first is indented, so that none of them can pass
// for something else.
func CleanLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = Clean(strings.TrimRight(line, "\r"))
		if i > 0 {
			lines[i] = "  " + strings.TrimPrefix(lines[i], "  ")
		}
	}
	return strings.Join(lines, "\n")
}

// CleanJSON makes the text of a JSON value harmless without changing the value: the characters in question can stand
// only inside its strings, where they are written as escapes.
func CleanJSON(text []byte) []byte {
	if harmless(string(text)) {
		return text
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case printable(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// harmless tells whether text can be shown as it is.
func harmless(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !printable(r) {
			return false
		}
	}
	return true
}

// printable tells whether a character may reach a screen. Joiners inside words and emoji are kept; every other
// character without a look of its own is not.
func printable(r rune) bool {
	switch r {
	case ' ', '\u200c', '\u200d':
		return true
	}
	return unicode.IsPrint(r)
}

func escape(r rune) string {
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xFFFF:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// cut shortens text to a number of bytes, at a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	limit -= len("…")
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// Shell writes text as one word of a POSIX shell, for commands that people are to type. Words with characters that
// cannot be shown are written as $'…', which bash, zsh and newer POSIX shells read.
func Shell(word string) string {
	plain := word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r))
	}) < 0
	switch {
	case plain:
		return word
	case harmless(word):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, c := range []byte(word) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c < 0x7f:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return "$'" + b.String() + "'"
}

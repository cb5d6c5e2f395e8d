package canon

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The reasons for which a value has no canonical form. Every [*Error] wraps one of them.
var (
	// ErrSyntax: the text is not exactly one JSON value (malformed, cut short, empty, or followed by more).
	ErrSyntax = errors.New("not one JSON value")
	// ErrDuplicateKey: an object has the same member name twice, perhaps spelled with different escapes.
	ErrDuplicateKey = errors.New("duplicate key")
	// ErrInvalidText: a string holds invalid UTF-8, or an escape for half a surrogate pair.
	ErrInvalidText = errors.New("invalid text")
	// ErrTooDeep: arrays and objects are nested more than MaxDepth levels deep (or a Go value contains itself).
	ErrTooDeep = errors.New("nested too deeply")
	// ErrNumber: a number is out of bounds, or may already have been rounded by the Go type that holds it.
	ErrNumber = errors.New("number out of bounds")
	// ErrUnsupported: a Go value that JSON cannot express.
	ErrUnsupported = errors.New("value without a JSON form")
)

// Error says which part of a value cannot be brought into canonical form, and why. Its text holds the names of
// members and never a value; at most it quotes the one character or escape at which malformed text breaks.
type Error struct {
	// Path is the JSON Pointer (RFC 6901) of the place; empty for the whole value.
	Path string
	// Offset is the place's byte offset in the JSON text that was being read; -1 for a Go value, which has no
	// text. For a json.RawMessage within a Go value it counts from the start of that message.
	Offset int64
	// Reason says what is wrong, and what would be right.
	Reason string
	// Err is the sentinel for the kind of problem, such as ErrDuplicateKey.
	Err error
}

// Error returns one line with the reason and the place. Very long paths are shortened in the middle.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Err.Error())
	if e.Path != "" {
		b.WriteString(" at ")
		b.WriteString(strconv.Quote(shorten(e.Path)))
	}
	if e.Offset >= 0 {
		b.WriteString(" (byte ")
		b.WriteString(strconv.FormatInt(e.Offset, 10))
		b.WriteString(")")
	}
	b.WriteString(": ")
	b.WriteString(e.Reason)
	return b.String()
}

// Unwrap returns the sentinel, so that errors.Is works.
func (e *Error) Unwrap() error { return e.Err }

// shorten keeps the first and the last 100 bytes or so of a long text, without splitting a character.
func shorten(s string) string {
	const part = 100
	if len(s) <= 2*part+len("…") {
		return s
	}
	head, tail := part, len(s)-part
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "…" + s[tail:]
}

// place is where in a value the work has arrived: one link for each container around it. The pointer text is
// built only when there is an error to report. The zero place is the whole value.
type place struct {
	parent *place
	name   string // of the member, in an object
	index  int    // of the element, in an array
	array  bool
	depth  int // the number of containers around the place
}

func (p *place) member(name string) place {
	return place{parent: p, name: name, depth: p.depth + 1}
}

func (p *place) element(i int) place {
	return place{parent: p, index: i, array: true, depth: p.depth + 1}
}

// pointer returns the place as a JSON Pointer.
func (p *place) pointer() string {
	tokens := make([]string, 0, p.depth)
	for ; p.parent != nil; p = p.parent {
		if p.array {
			tokens = append(tokens, strconv.Itoa(p.index))
		} else {
			tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(p.name, "~", "~0"), "/", "~1"))
		}
	}
	var b strings.Builder
	for _, token := range slices.Backward(tokens) {
		b.WriteByte('/')
		b.WriteString(token)
	}
	return b.String()
}

// fail makes an error about this place. Pass -1 as the offset where there is no text.
func (p *place) fail(offset int64, sentinel error, reason string) *Error {
	return &Error{Path: p.pointer(), Offset: offset, Reason: reason, Err: sentinel}
}

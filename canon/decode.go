package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the greatest number of arrays and objects that may stand inside each other.
const MaxDepth = 10000

// Decode reads exactly one JSON value with the strictness of [JSON] and returns it as map[string]any, []any,
// string, bool, nil or json.Number. Numbers keep the text in which they were written, every digit of it; the
// bounds hold for their values, so a zero may still be spelled with an enormous exponent: before arithmetic of
// unlimited precision, take the canonical text ([Value]). Errors are of type [*Error].
func Decode(raw []byte) (any, error) {
	return decode(raw, new(place))
}

// decode is Decode for a text that stands at a place in a larger value.
func decode(raw []byte, at *place) (any, error) {
	r := reader{
		raw: raw,
		// Duplicates are found in the maps that are built anyway.
		dec: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true)),
	}
	v, err := r.value(at)
	if err != nil {
		return nil, err
	}
	switch _, err := r.dec.ReadToken(); {
	case err == nil:
		return nil, at.fail(r.start(r.end), ErrSyntax, "something follows the value; pass one value alone")
	case !errors.Is(err, io.EOF):
		return nil, r.failure(err, at)
	}
	return v, nil
}

// reader builds Go values from the tokens of one text.
type reader struct {
	raw []byte
	dec *jsontext.Decoder
	end int64 // of the last token
}

// next reads a token and returns it with the offset at which it starts.
func (r *reader) next(at *place) (jsontext.Token, int64, error) {
	before := r.end
	token, err := r.dec.ReadToken()
	if err != nil {
		return token, 0, r.failure(err, at)
	}
	r.end = r.dec.InputOffset()
	return token, r.start(before), nil
}

// start skips white space and separators from the end of a token to the start of the one after it.
func (r *reader) start(end int64) int64 {
	for end < int64(len(r.raw)) && strings.IndexByte(" \t\r\n,:", r.raw[end]) >= 0 {
		end++
	}
	return end
}

func (r *reader) value(at *place) (any, error) {
	if kind := r.dec.PeekKind(); (kind == '{' || kind == '[') && at.depth >= MaxDepth {
		return nil, at.fail(r.start(r.end), ErrTooDeep, tooDeep)
	}
	token, start, err := r.next(at)
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		text := token.String()
		if _, err := parseDecimal(text); err != nil {
			return nil, at.fail(start, ErrNumber, err.Error())
		}
		return json.Number(text), nil
	case '[':
		return r.array(at)
	default: // '{': the decoder refuses anything else that could stand here
		return r.object(at)
	}
}

func (r *reader) array(at *place) (any, error) {
	items := []any{}
	for r.dec.PeekKind() != ']' {
		here := at.element(len(items))
		item, err := r.value(&here)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, _, err := r.next(at)
	return items, err
}

func (r *reader) object(at *place) (any, error) {
	members := map[string]any{}
	for r.dec.PeekKind() != '}' {
		token, start, err := r.next(at)
		if err != nil {
			return nil, err
		}
		name := token.String()
		here := at.member(name)
		if _, twice := members[name]; twice {
			return nil, here.fail(start, ErrDuplicateKey, "the object has this member twice; keep one of them")
		}
		if members[name], err = r.value(&here); err != nil {
			return nil, err
		}
	}
	_, _, err := r.next(at)
	return members, err
}

var tooDeep = fmt.Sprintf("arrays and objects may be nested %d levels deep; flatten the value", MaxDepth)

// failure turns an error of the decoder, met while reading the value at a place, into ours.
func (r *reader) failure(err error, at *place) *Error {
	offset := int64(len(r.raw))
	reason := "the text ends before the value does; pass one complete value"
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) && !errors.Is(err, io.ErrUnexpectedEOF) {
		offset, reason = min(max(syntactic.ByteOffset, 0), offset), syntactic.Err.Error()
	}
	rest := r.raw[offset:]
	switch {
	case len(rest) == 0:
		return at.fail(offset, ErrSyntax, reason)
	case invalidUTF8(rest):
		return at.fail(offset, ErrInvalidText, "a byte that is not UTF-8; encode the text as UTF-8")
	case halfSurrogate(rest):
		return at.fail(offset, ErrInvalidText, "an escape for half a surrogate pair; write the whole pair, or the character itself")
	}
	return at.fail(offset, ErrSyntax, reason)
}

func invalidUTF8(text []byte) bool {
	r, size := utf8.DecodeRune(text)
	return r == utf8.RuneError && size == 1
}

// halfSurrogate reports whether text starts with the escape of a surrogate.
func halfSurrogate(text []byte) bool {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return false
	}
	var unit rune
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit = unit<<4 | rune(c|0x20-'a'+10)
		default:
			return false
		}
	}
	return utf16.IsSurrogate(unit)
}

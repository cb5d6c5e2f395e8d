// Package canon gives every JSON value one exact text, and derives identities from it.
//
// Two JSON texts with the same meaning have the same canonical form, and two with a different meaning never
// do. MCPx decides with it whether two calls are the same intent, so a collision would suppress an action and
// a difference that is none would repeat one.
//
// # The canonical form
//
//   - No white space. Arrays keep their order. Object members are sorted by the UTF-16 code units of their
//     names, so "10" stands before "9", and U+1F600 (two surrogates) before U+FB33.
//   - Strings are never normalised. Only what JSON requires is escaped: the quote, the backslash and the
//     control characters below U+0020, as \b \t \n \f \r or \u00xx in lower case. The slash, DEL, U+2028 and
//     everything else stand as they are.
//   - Numbers are exact: no digit is ever rounded, and none passes through a float64. 1.0, 1e0 and 10e-1 are
//     1, 1.50 is 1.5, -0 is 0.
//
// A number is written according to its value alone. With its significant digits D (without zeros at either
// end) and value D × 10^e:
//
//   - an integer with at most 20 trailing zeros (0 ≤ e ≤ 20) is written plainly, however long it is;
//   - an integer with more trailing zeros is written in exponent form: 1e+21, 1.5e+400;
//   - any other number of magnitude 1e-6 or more is written plainly: 0.000001, 12345678901234567890123.5;
//   - a smaller one is written in exponent form: 1e-7, 1.25e-400.
//
// Exponent form has one digit before the point, and a sign and no leading zeros in the exponent. A canonical
// text is thus at most some five times as long as the text that it was made from.
//
// # What is refused
//
// Text that is not exactly one JSON value ([ErrSyntax]), an object with the same member twice, however it is
// spelled ([ErrDuplicateKey]), invalid UTF-8 and escapes for half a surrogate pair ([ErrInvalidText]), more
// than [MaxDepth] levels of nesting ([ErrTooDeep]), and numbers of more than [MaxDigits] significant digits,
// or with a decimal exponent beyond ±[MaxExponent] ([ErrNumber]). The error is an [*Error] and names the place.
//
// # Relation to RFC 8785
//
// The form is that of RFC 8785 (JCS) for strings, literals, objects and arrays, for integers within ±(2^53-1),
// and for every other number below 1e21 that is written with the digits of the shortest text of its double.
// It departs where RFC 8785 rounds every number to a double: 9007199254740993 stays, where JCS makes it
// 9007199254740992 (and so gives two identifiers one form); 1e400 is kept, where JCS has no form;
// 0.1000000000000000000001 stays, where JCS has 0.1; and an integer of 1e21 or more with at most 20 trailing
// zeros is plain, where JCS has an exponent. A canonical text of this package is therefore not to be called JCS.
//
// Nothing here does I/O, reads a clock or keeps state: the same input has the same result and the same error
// text everywhere, so deterministic workflow code may call all of it.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// JSON returns the canonical form of raw, which must hold exactly one JSON value (white space around it is
// allowed). raw is not modified, and the result does not share memory with it. Errors are of type [*Error].
func JSON(raw []byte) ([]byte, error) {
	v, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	return appendValue(make([]byte, 0, len(raw)), v, new(place))
}

// Equal reports whether a and b have the same canonical form, that is, the same meaning. It fails when one of
// them has none.
func Equal(a, b []byte) (bool, error) {
	ca, err := JSON(a)
	if err != nil {
		return false, fmt.Errorf("the first value: %w", err)
	}
	cb, err := JSON(b)
	if err != nil {
		return false, fmt.Errorf("the second value: %w", err)
	}
	return bytes.Equal(ca, cb), nil
}

// Digest returns the SHA-256 of the canonical form of raw, in lower-case hexadecimal.
func Digest(raw []byte) (string, error) {
	text, err := JSON(raw)
	if err != nil {
		return "", err
	}
	return hexSHA256(text), nil
}

// DigestValue returns the digest of a Go value: that of [Digest] for the text that [Value] gives it.
func DigestValue(v any) (string, error) {
	text, err := Value(v)
	if err != nil {
		return "", err
	}
	return hexSHA256(text), nil
}

func hexSHA256(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

package canon

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The bounds of numbers. They belong to the value and not to its spelling, so equal numbers share a verdict:
// zeros at either end, and zeros in front of an exponent, do not count.
const (
	// MaxDigits is the greatest number of significant digits.
	MaxDigits = 10000
	// MaxExponent bounds the decimal exponent x, in either direction, of a number written as d.ddd × 10^x.
	MaxExponent = 10000
)

const (
	// plainZeros is the greatest number of trailing zeros that an integer is written with. With 20, every
	// double below 1e21 looks as in RFC 8785, and a short text cannot blow up to a long one.
	plainZeros = 20
	// plainExponent is the smallest exponent of a fraction that is written plainly, as in RFC 8785.
	plainExponent = -6
)

// decimal is the exact value ±digits × 10^exp. The digits have no zeros at either end; none means zero.
type decimal struct {
	negative bool
	digits   string
	exp      int64
}

// parseDecimal reads a number in JSON's grammar.
func parseDecimal(text string) (decimal, error) {
	rest, negative := strings.CutPrefix(text, "-")
	whole, rest := leadingDigits(rest)
	if whole == "" || (whole[0] == '0' && len(whole) > 1) {
		return decimal{}, errNumberText
	}
	var fraction string
	if after, found := strings.CutPrefix(rest, "."); found {
		if fraction, rest = leadingDigits(after); fraction == "" {
			return decimal{}, errNumberText
		}
	}
	var exp int64
	if rest != "" {
		var ok bool
		if exp, ok = parseExponent(rest); !ok {
			return decimal{}, errNumberText
		}
	}
	digits := whole + fraction
	exp -= int64(len(fraction))
	short := strings.TrimRight(digits, "0")
	exp += int64(len(digits) - len(short))
	short = strings.TrimLeft(short, "0")
	if short == "" {
		return decimal{}, nil
	}
	d := decimal{negative: negative, digits: short, exp: exp}
	if len(short) > MaxDigits {
		return decimal{}, errDigits
	}
	if x := d.scientific(); x > MaxExponent || x < -MaxExponent {
		return decimal{}, errExponent
	}
	return d, nil
}

var (
	errNumberText = errors.New("not a number in JSON's grammar; write it as in -12.5e3")
	errDigits     = fmt.Errorf("more than %d significant digits; send the value as a string", MaxDigits)
	errExponent   = fmt.Errorf("a decimal exponent beyond ±%d; send the value as a string", MaxExponent)
)

// leadingDigits splits text after its leading decimal digits.
func leadingDigits(text string) (digits, rest string) {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return text[:n], text[n:]
}

// parseExponent reads an exponent with its letter. One that is too long for an int64 becomes ±10^18, which no
// number of digits can bring back within bounds.
func parseExponent(text string) (int64, bool) {
	const farOut = 1e18
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	sign := int64(1)
	if text != "" && (text[0] == '+' || text[0] == '-') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	digits, rest := leadingDigits(text)
	if digits == "" || rest != "" {
		return 0, false
	}
	exp, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || exp > farOut {
		exp = farOut
	}
	return sign * exp, true
}

// scientific returns the exponent x of the form d.ddd × 10^x.
func (d decimal) scientific() int64 {
	return d.exp + int64(len(d.digits)) - 1
}

// appendTo writes the canonical text of the number.
func (d decimal) appendTo(dst []byte) []byte {
	if d.digits == "" {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	x := d.scientific()
	switch {
	case d.exp > plainZeros || x < plainExponent:
		dst = append(dst, d.digits[0])
		if len(d.digits) > 1 {
			dst = append(dst, '.')
			dst = append(dst, d.digits[1:]...)
		}
		dst = append(dst, 'e')
		if x > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, x, 10)
	case d.exp >= 0:
		dst = append(dst, d.digits...)
		return appendZeros(dst, d.exp)
	case x >= 0:
		dst = append(dst, d.digits[:x+1]...)
		dst = append(dst, '.')
		return append(dst, d.digits[x+1:]...)
	default:
		dst = append(dst, "0."...)
		dst = appendZeros(dst, -x-1)
		return append(dst, d.digits...)
	}
}

func appendZeros(dst []byte, n int64) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

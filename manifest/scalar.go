package manifest

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/mcpx-go/mcpx/canon"
)

// The scalars of YAML 1.2's core schema. What other versions read otherwise is refused rather than guessed.
var (
	yamlInt     = regexp.MustCompile(`^[-+]?[0-9]+$`)
	yamlOctal   = regexp.MustCompile(`^0o[0-7]+$`)
	yamlHex     = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	yamlFloat   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlSpecial = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9]+$`)
)

// scalarValue is what an unquoted scalar means.
type scalarValue struct {
	kind          kind
	text          string
	problem, want string
}

// scalar reads an unquoted scalar. looksNumeric tells that some reader of YAML takes it for a number.
func scalar(text string, looksNumeric bool) scalarValue {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return scalarValue{kind: kindNull}
	case "true", "True", "TRUE":
		return scalarValue{kind: kindBool, text: "true"}
	case "false", "False", "FALSE":
		return scalarValue{kind: kindBool, text: "false"}
	}
	switch {
	case leadingZero.MatchString(text):
		plain := strings.TrimLeft(strings.TrimLeft(text, "+-"), "0")
		return scalarValue{
			kind: kindNull, problem: fmt.Sprintf("%s is decimal to some readers of YAML and octal to others", text),
			want: fmt.Sprintf("write %s, 0o%s, or quote it", orZero(plain), orZero(plain)),
		}
	case yamlInt.MatchString(text):
		return jsonNumber(strings.TrimPrefix(text, "+"))
	case yamlOctal.MatchString(text), yamlHex.MatchString(text):
		i, ok := new(big.Int).SetString(text, 0)
		if !ok {
			return scalarValue{kind: kindNull, problem: fmt.Sprintf("%s is no number", text)}
		}
		return jsonNumber(i.String())
	case yamlFloat.MatchString(text):
		return jsonNumber(floatText(text))
	case yamlSpecial.MatchString(text):
		return scalarValue{kind: kindNull, problem: fmt.Sprintf("%s has no form in JSON", text), want: "write a number, or quote it"}
	case looksNumeric:
		return scalarValue{
			kind: kindNull, problem: fmt.Sprintf("%s is a number to some readers of YAML and text to others", text),
			want: "write a decimal number without _, or quote it",
		}
	}
	return scalarValue{kind: kindText, text: text}
}

func orZero(digits string) string {
	if digits == "" {
		return "0"
	}
	return digits
}

// floatText writes a float of YAML as JSON does: .5 as 0.5, 1. as 1, 01.5 as 1.5. No digit of its value changes.
func floatText(text string) string {
	text = strings.TrimPrefix(text, "+")
	rest, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole = orZero(strings.TrimLeft(whole, "0"))
	if fraction != "" {
		whole += "." + fraction
	}
	if negative {
		whole = "-" + whole
	}
	return whole + exponent
}

// jsonNumber checks the bounds of a number.
func jsonNumber(text string) scalarValue {
	if _, err := canon.JSON([]byte(text)); err != nil {
		return scalarValue{kind: kindNull, problem: fmt.Sprintf("the number %s is out of bounds", clip(text, 40)), want: "quote it"}
	}
	return scalarValue{kind: kindNumber, text: text}
}

package canon_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/canon"
)

func TestNumbersAreExactAndHaveOneText(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("0", n) }
	for _, tt := range []struct {
		want      string
		spellings []string
	}{
		{"0", []string{"0", "-0", "0.0", "-0.00", "0e5", "0e-5", "-0E99999999999999999999", "0." + zeros(20000)}},
		{"1", []string{"1", "1.0", "1e0", "10e-1", "1E+0", "1e-0", "0.1e1", "1e000", "0.0001e4", "1" + zeros(20000) + "e-20000"}},
		{"-1", []string{"-1", "-1.0", "-10e-1"}},
		{"1.5", []string{"1.5", "1.50", "15e-1", "0.15e1", "1.5e00"}},
		{"100", []string{"100", "1e2", "1.00e2", "1000e-1"}},
		{"9007199254740993", []string{"9007199254740993", "9007199254740993.0", "9007199254740.993e3"}},
		{"18446744073709551615", []string{"18446744073709551615"}},
		{"7960607143101464576", []string{"7960607143101464576"}},
		{"123456789012345678901234567890", []string{"123456789012345678901234567890", "12345678901234567890123456789e1"}},
		{"1267650600228229401496703205376", []string{"1267650600228229401496703205376"}},
		{"100000000000000000000", []string{"1e20", "100000000000000000000", "0.1e21"}},
		{"1e+21", []string{"1e21", "1000000000000000000000", "10e20", "1E+0021"}},
		{"1e+400", []string{"1e400", "1" + zeros(400), "0.1e401"}},
		{"-1.5e+400", []string{"-1.5e400", "-15" + zeros(399)}},
		{"1500000000000000000000", []string{"1.5e21", "15e20"}},
		{"0.000001", []string{"1e-6", "0.000001", "0.1e-5"}},
		{"0.00000123", []string{"1.23e-6"}},
		{"1e-7", []string{"1e-7", "0.0000001", "1.0e-7"}},
		{"1e-401", []string{"0.1e-400", "1e-401"}},
		{"1.25e-400", []string{"1.25e-400", "125e-402"}},
		{"0.1", []string{"0.1", "1e-1", "0.10"}},
		{"0.30000000000000004", []string{"0.30000000000000004"}},
		{"0.1000000000000000000001", []string{"0.1000000000000000000001"}},
		{"12345678901234567890123.5", []string{"12345678901234567890123.5", "1.23456789012345678901235e22"}},
		{"1e+10000", []string{"1e10000"}},
		{"1e-10000", []string{"1e-10000", "0.1e-9999"}},
		{strings.Repeat("7", 10000), []string{strings.Repeat("7", 10000), strings.Repeat("7", 10000) + ".0"}},
	} {
		for _, raw := range tt.spellings {
			got, err := canon.JSON([]byte(raw))
			require.NoError(t, err, shortened(raw))
			assert.Equal(t, tt.want, string(got), shortened(raw))
		}
	}
}

func TestBoundsBelongToTheValueNotToItsSpelling(t *testing.T) {
	_, err := canon.JSON([]byte("0." + strings.Repeat("0", 15000) + "1e15000"))
	require.NoError(t, err)
	for _, raw := range []string{"10e10000", "0.01e-9999", "9.9e10001", strings.Repeat("9", 10001), "1." + strings.Repeat("3", 10000), "1" + strings.Repeat("0", 10001)} {
		_, err := canon.JSON([]byte(raw))
		require.ErrorIs(t, err, canon.ErrNumber, shortened(raw))
	}
}

func TestCanonicalTextIsOfBoundedSize(t *testing.T) {
	for _, number := range []string{"1e20", "1e-6", "1e9999", "-1e-9999", "12e20"} {
		raw := "[" + strings.Repeat(number+",", 999) + number + "]"
		got, err := canon.JSON([]byte(raw))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(got), 5*len(raw), number)
	}
}

func TestDoublesBelow1e21LookAsInRFC8785(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(f) || math.Abs(f) >= 1e21 {
			f = rapid.Float64Range(-1e21, 1e21).Filter(func(f float64) bool { return math.Abs(f) < 1e21 }).Draw(t, "f")
		}
		raw := strconv.FormatFloat(f, rapid.SampledFrom([]byte("eEfg")).Draw(t, "format"), -1, 64)
		want, err := jcs.Transform([]byte(raw))
		require.NoError(t, err)
		got, err := canon.JSON([]byte(raw))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), raw)
	})
}

// TestNumbersShareATextExactlyWhenTheyAreEqual compares with exact rational arithmetic.
func TestNumbersShareATextExactlyWhenTheyAreEqual(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?0{0,2}[0-9]{1,2})?`)
	few := rapid.StringMatching(`-?(0|10?0?)(\.00?|\.0?1)?(e[+-]?[0-3])?`)
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.OneOf(number, few)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		textA, err := canon.JSON([]byte(a))
		require.NoError(t, err)
		textB, err := canon.JSON([]byte(b))
		require.NoError(t, err)
		require.True(t, json.Valid(textA))
		require.Zero(t, rational(t, a).Cmp(rational(t, string(textA))), "%s became %s", a, textA)
		require.Equal(t, rational(t, a).Cmp(rational(t, b)) == 0, string(textA) == string(textB), "%s and %s", a, b)
		require.LessOrEqual(t, len(textA), len(a)+20)
	})
}

// rational is the exact value of a number. A zero may have any exponent, which big.Rat would work out.
func rational(t require.TestingT, text string) *big.Rat {
	if mantissa, _, _ := strings.Cut(strings.ToLower(text), "e"); strings.Trim(mantissa, "-.0") == "" {
		return new(big.Rat)
	}
	r, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	return r
}

func shortened(s string) string { return s[:min(len(s), 40)] }

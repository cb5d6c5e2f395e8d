package canon_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/canon"
)

func TestOneMeaningHasOneText(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"null", " null\n", `null`},
		{"true", `true`, `true`},
		{"empty object", ` { } `, `{}`},
		{"empty array", `[ ]`, `[]`},
		{"array order is kept", `[3, 1, 2]`, `[3,1,2]`},
		{"members are sorted at every level", `{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}`, `{"a":[{"y":2,"z":1}],"b":{"c":2,"d":1}}`},
		{"null is not absence", `{"a":null}`, `{"a":null}`},
		{"text is not a number", `["100",100]`, `["100",100]`},
		{"integer-like names sort as text", `{"9":1,"10":2,"":3,"a":4,"B":5}`, `{"":3,"10":2,"9":1,"B":5,"a":4}`},
		{"__proto__ is a name like any other", `{"a":1,"__proto__":{"x":1},"constructor":2}`, `{"__proto__":{"x":1},"a":1,"constructor":2}`},
		{"names sort by UTF-16 code units", `{"\uFB33":1,"\uD83D\uDE00":2}`, "{\"😀\":2,\"\ufb33\":1}"},
		{"the order of RFC 8785",
			`{"\u20ac":"Euro","\r":"CR","\ufb33":"Dalet","1":"One","\ud83d\ude00":"Face","\u0080":"Control","\u00f6":"o"}`,
			"{\"\\r\":\"CR\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"o\",\"€\":\"Euro\",\"😀\":\"Face\",\"\ufb33\":\"Dalet\"}"},
		{"a shorter name comes first", `{"aa":1,"a":2,"a😀":3,"a\uffff":4}`, "{\"a\":2,\"aa\":1,\"a😀\":3,\"a\uffff\":4}"},
		{"only what must be is escaped", `"\u003c\/\u0026\u2028\u007f\u00e9\u0041"`, "\"</&\u2028\u007féA\""},
		{"control characters", `"\u0008\u0009\u000A\u000c\u000D\u0000\u001F\u000b\"\\"`, `"\b\t\n\f\r\u0000\u001f\u000b\"\\"`},
		{"no normalisation", "[\"\u00e9\",\"e\u0301\"]", "[\"\u00e9\",\"e\u0301\"]"},
		{"U+FFFD and noncharacters are text", `"\ufffd\uffff\ud83f\udfff"`, "\"\ufffd\uffff\U0001ffff\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canon.JSON([]byte(tt.raw))
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
			again, err := canon.JSON(got)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(again), "canonical text is its own canonical form")
		})
	}
}

func TestWhatHasNoCanonicalFormIsRefusedAtItsPlace(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		err       error
		path      string
		offset    int64
	}{
		{"nothing", ``, canon.ErrSyntax, "", 0},
		{"white space", "  ", canon.ErrSyntax, "", 2},
		{"cut short", `{"a":[1,`, canon.ErrSyntax, "/a/1", 8},
		{"cut in a string", `{"a":"b`, canon.ErrSyntax, "/a", 7},
		{"second value", `1 2`, canon.ErrSyntax, "", 2},
		{"second value after a comma", `{},{}`, canon.ErrSyntax, "", 2},
		{"junk after the value", `{} x`, canon.ErrSyntax, "", 3},
		{"byte order mark", "\ufeff{}", canon.ErrSyntax, "", 0},
		{"leading zero", `{"a":01}`, canon.ErrSyntax, "", 6},
		{"plus sign", `+1`, canon.ErrSyntax, "", 0},
		{"NaN", `[NaN]`, canon.ErrSyntax, "/0", 1},
		{"comment", `{/**/}`, canon.ErrSyntax, "", 1},
		{"trailing comma", `[1,]`, canon.ErrSyntax, "/1", 2},
		{"name that is no string", `{"x":{1:2}}`, canon.ErrSyntax, "/x", 6},
		{"raw control character", "\"a\x01\"", canon.ErrSyntax, "", 2},
		{"bad escape", `"\x41"`, canon.ErrSyntax, "", 1},
		{"escape without digits", `"\uZZZZ"`, canon.ErrSyntax, "", 1},
		{"duplicate", `{"a":1,"b":2,"a":1}`, canon.ErrDuplicateKey, "/a", 13},
		{"duplicate in another spelling", `{"x":[{"a":1, "\u0061":2}]}`, canon.ErrDuplicateKey, "/x/0/a", 14},
		{"duplicate with a pointer's characters", `{"a/~b":1,"a/~b":1}`, canon.ErrDuplicateKey, "/a~1~0b", 10},
		{"byte that is not UTF-8", "{\"a\":\"x\xff\"}", canon.ErrInvalidText, "/a", 7},
		{"overlong encoding", "[\"\xc0\x80\"]", canon.ErrInvalidText, "/0", 2},
		{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", canon.ErrInvalidText, "/0", 2},
		{"half a character", "[\"\xe2\x82\"]", canon.ErrInvalidText, "/0", 2},
		{"not UTF-8 in a name", "{\"\xff\":1}", canon.ErrInvalidText, "", 2},
		{"lone high surrogate", `["\uD800"]`, canon.ErrInvalidText, "/0", 2},
		{"lone low surrogate", `["a\udc00"]`, canon.ErrInvalidText, "/0", 3},
		{"surrogates in the wrong order", `"\uDC00\uD800"`, canon.ErrInvalidText, "", 1},
		{"high surrogate before another escape", `"\ud83d\n"`, canon.ErrInvalidText, "", 1},
		{"exponent out of bounds", `{"n":[1, 1e10001]}`, canon.ErrNumber, "/n/1", 9},
		{"exponent out of any integer", `-1e99999999999999999999999`, canon.ErrNumber, "", 0},
		{"tiny", `1e-10001`, canon.ErrNumber, "", 0},
		{"too many digits", strings.Repeat("1", 10001), canon.ErrNumber, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canon.JSON([]byte(tt.raw))
			assert.Nil(t, got)
			require.ErrorIs(t, err, tt.err)
			var at *canon.Error
			require.ErrorAs(t, err, &at)
			assert.Equal(t, tt.path, at.Path)
			assert.Equal(t, tt.offset, at.Offset)
			assert.NotEmpty(t, at.Reason)

			_, decodeErr := canon.Decode([]byte(tt.raw))
			assert.Equal(t, err, decodeErr, "Decode is as strict")
			_, valueErr := canon.Value(map[string]any{"m": []any{json.RawMessage(tt.raw)}})
			require.ErrorAs(t, valueErr, &at)
			assert.Equal(t, "/m/0"+tt.path, at.Path, "a raw message is named within its value")
		})
	}
}

func TestNestingIsBounded(t *testing.T) {
	nested := func(open, middle, close string, n int) []byte {
		return []byte(strings.Repeat(open, n) + middle + strings.Repeat(close, n))
	}
	for _, tt := range []struct{ open, middle, close string }{{"[", "", "]"}, {`{"a":`, "{}", "}"}} {
		n := canon.MaxDepth - len(tt.middle)/2
		got, err := canon.JSON(nested(tt.open, tt.middle, tt.close, n))
		require.NoError(t, err)
		assert.Equal(t, nested(tt.open, tt.middle, tt.close, n), got)

		_, err = canon.JSON(nested(tt.open, tt.middle, tt.close, n+1))
		require.ErrorIs(t, err, canon.ErrTooDeep)
		assert.Less(t, len(err.Error()), 600, "the place is shortened in the message")
		_, err = canon.Value([]any{json.RawMessage(nested(tt.open, tt.middle, tt.close, n))})
		require.ErrorIs(t, err, canon.ErrTooDeep, "the levels around a raw message count")
	}
	_, err := canon.JSON(nested("[", "", "]", 2_000_000))
	require.ErrorIs(t, err, canon.ErrTooDeep)
}

func TestErrorsNameThePlaceAndNoValue(t *testing.T) {
	_, err := canon.JSON([]byte(`{"login":{"password":"hunter2","password":"hunter3"}}`))
	require.EqualError(t, err, `duplicate key at "/login/password" (byte 31): the object has this member twice; keep one of them`)
	_, err = canon.Value(map[string]any{"f": math.NaN()})
	require.EqualError(t, err, `number out of bounds at "/f": JSON has no NaN and no infinity; leave the value out`)
}

func TestLongPlacesAreShortenedInTheMessageOnly(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 5000), strings.Repeat("é", 5000), "a" + strings.Repeat("😀", 5000) + "z"} {
		_, err := canon.JSON([]byte(`{"` + name + `":1e99999}`))
		var at *canon.Error
		require.ErrorAs(t, err, &at)
		assert.Equal(t, "/"+name, at.Path)
		assert.Less(t, len(err.Error()), 400)
		assert.Contains(t, err.Error(), "…")
		assert.NotContains(t, err.Error(), `\x`, "no character is split")
	}
}

func TestInputIsNotModified(t *testing.T) {
	raw := []byte(` {"b" : "\u0041", "a":[1.0 , {"y":"\ud83d\ude00","x":null}]} `)
	before := string(raw)
	got, err := canon.JSON(raw)
	require.NoError(t, err)
	clear(got)
	assert.Equal(t, before, string(raw))
}

func TestEqualComparesMeaning(t *testing.T) {
	same, err := canon.Equal([]byte(`{"a":1.0,"b":"\u0041"}`), []byte(`{ "b":"A", "a":10e-1 }`))
	require.NoError(t, err)
	assert.True(t, same)
	same, err = canon.Equal([]byte(`{"id":9007199254740993}`), []byte(`{"id":9007199254740992}`))
	require.NoError(t, err)
	assert.False(t, same, "identifiers beyond 2^53 stay apart")
	same, err = canon.Equal([]byte(`{"a":null}`), []byte(`{}`))
	require.NoError(t, err)
	assert.False(t, same)

	_, err = canon.Equal([]byte(`{`), []byte(`{}`))
	require.ErrorIs(t, err, canon.ErrSyntax)
	assert.ErrorContains(t, err, "first")
	_, err = canon.Equal([]byte(`{}`), []byte(`{"a":1,"a":1}`))
	require.ErrorIs(t, err, canon.ErrDuplicateKey)
	assert.ErrorContains(t, err, "second")
}

func TestDigestIsOfTheCanonicalForm(t *testing.T) {
	a, err := canon.Digest([]byte(`{ "b": 1.0, "a": "x" }`))
	require.NoError(t, err)
	b, err := canon.DigestValue(map[string]any{"a": "x", "b": 1})
	require.NoError(t, err)
	assert.Equal(t, a, b)
	empty, err := canon.Digest([]byte(` {} `))
	require.NoError(t, err)
	assert.Equal(t, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", empty)

	_, err = canon.Digest([]byte(`{"a":1,"a":2}`))
	require.ErrorIs(t, err, canon.ErrDuplicateKey)
	_, err = canon.DigestValue(math.Inf(1))
	require.ErrorIs(t, err, canon.ErrNumber)
}

func TestDecodeKeepsNumbersAsWritten(t *testing.T) {
	got, err := canon.Decode([]byte(`{"n":[1.50,1e2,18446744073709551616,-0],"s":"\u0041","t":true,"o":{},"z":null,"a":[]}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"n": []any{json.Number("1.50"), json.Number("1e2"), json.Number("18446744073709551616"), json.Number("-0")},
		"s": "A", "t": true, "o": map[string]any{}, "z": nil, "a": []any{},
	}, got)
}

// TestAgreesWithRFC8785WhereNothingRounds compares with an independent implementation of RFC 8785.
func TestAgreesWithRFC8785WhereNothingRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := jsonText(3).Draw(t, "raw")
		want, err := jcs.Transform([]byte(raw))
		require.NoError(t, err)
		got, err := canon.JSON([]byte(raw))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

// jsonText draws a JSON text whose canonical form RFC 8785 and this package share, in varied spelling.
func jsonText(depth int) *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	scalar := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "false"}),
		rapid.Custom(func(t *rapid.T) string {
			n := rapid.Int64Range(-(1<<53-1), 1<<53-1).Draw(t, "n")
			spelling := rapid.SampledFrom([]string{"%d", "%d.0", "%d.00e0", "%d0e-1"}).Draw(t, "spelling")
			if n == 0 {
				spelling = "-%d.0"
			}
			return fmt.Sprintf(spelling, n)
		}),
		rapid.Custom(func(t *rapid.T) string {
			f := rapid.Float64Range(-1e20, 1e20).Draw(t, "f")
			return string(must(json.Marshal(f)))
		}),
		quoted(),
	)
	if depth == 0 {
		return scalar
	}
	inner := jsonText(depth - 1)
	return rapid.Custom(func(t *rapid.T) string {
		s := func() string { return space.Draw(t, "space") }
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return s() + scalar.Draw(t, "scalar") + s()
		case 1:
			items := rapid.SliceOfN(inner, 0, 4).Draw(t, "items")
			return s() + "[" + s() + strings.Join(items, s()+","+s()) + "]" + s()
		default:
			seen := map[string]bool{}
			var members []string
			for _, name := range rapid.SliceOfN(quoted(), 0, 6).Draw(t, "names") {
				var plain string
				require.NoError(t, json.Unmarshal([]byte(name), &plain))
				if !seen[plain] {
					members = append(members, name+s()+":"+inner.Draw(t, "value"))
				}
				seen[plain] = true
			}
			return s() + "{" + strings.Join(members, ",") + "}" + s()
		}
	})
}

// quoted draws a JSON string, with some characters as escapes.
func quoted() *rapid.Generator[string] {
	char := rapid.OneOf(
		rapid.RuneFrom([]rune("aAb01~/\\\"\x00\b\t\n\v\f\r\x1f<>&\x7f\u0080\u00e9\u0301\u2028\ud7ff\ue000\ufb33\ufeff\ufffd\uffff\U00010000\U0001f600\U0010ffff")),
		rapid.Rune(),
	)
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range rapid.SliceOfN(char, 0, 5).Draw(t, "chars") {
			switch escape := rapid.Bool().Draw(t, "escape"); {
			case r > 0xFFFF && escape:
				fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
			case r < ' ' || r == '"' || r == '\\' || r <= 0xFFFF && escape:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
		return b.String()
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

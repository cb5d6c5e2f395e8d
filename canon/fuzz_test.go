package canon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/canon"
)

// FuzzJSON checks for any text that canonicalisation is idempotent, never panics, keeps the meaning that
// encoding/json sees, and refuses as malformed only what encoding/json refuses, too.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`null`, `{}`, `[]`, ` [1, 2.50 , "x"] `, `{"b":1,"a":{"d":[],"c":null}}`, `{"a":1,"\u0061":2}`,
		`-0`, `1e400`, `0.1e-400`, `1e99999999999999999999`, `0e00044400000004444000000`, `123456789012345678901234567890`, `9007199254740993`, `1E+21`, `01`, `1.`, `-`,
		`"\ud83d\ude00\u0000\u2028</"`, `"\uD800"`, "\"\xff\"", `{"\uFB33":1,"😀":2}`, `{"__proto__":1,"10":2,"9":3}`, `[1,2`, `1 2`, "\ufeff1",
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := canon.JSON(raw)
		if err != nil {
			var at *canon.Error
			require.ErrorAs(t, err, &at)
			require.Nil(t, text)
			require.NotEmpty(t, err.Error())
			if errors.Is(err, canon.ErrSyntax) {
				require.False(t, json.Valid(raw), "%q was refused: %v", raw, err)
			}
			return
		}
		require.True(t, json.Valid(raw))
		again, err := canon.JSON(text)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		v := decodeStd(t, raw)
		requireSame(t, v, decodeStd(t, text))
		fromValue, err := canon.Value(v)
		require.NoError(t, err)
		require.Equal(t, string(text), string(fromValue))
		if onlyPlainNumbers(v) {
			want, err := jcs.Transform(raw)
			require.NoError(t, err)
			require.Equal(t, string(want), string(text))
		}
	})
}

// FuzzSelect checks that no logical key can do anything but be found or be missing.
func FuzzSelect(f *testing.F) {
	for _, key := range []string{"a", "a.b", "a[0].b", `a["b.c"]`, "a.0", "", "[", `["`, `["\`, "a[0", "a..b", "."} {
		f.Add([]byte(`{"a":[{"b":1}],"":{"b":2}}`), key)
	}
	f.Fuzz(func(t *testing.T, args []byte, key string) {
		text, err := canon.Select(args, []string{key})
		if err != nil {
			require.Nil(t, text)
			return
		}
		got, err := canon.Decode(text)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Contains(t, got, key)
	})
}

func decodeStd(t *testing.T, raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return v
}

// requireSame compares two values, numbers by their exact size.
func requireSame(t *testing.T, a, b any) {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		require.True(t, ok)
		require.Zero(t, rational(t, a.String()).Cmp(rational(t, b.String())), "%s and %s", a, b)
	case []any:
		b, ok := b.([]any)
		require.True(t, ok)
		require.Len(t, b, len(a))
		for i := range a {
			requireSame(t, a[i], b[i])
		}
	case map[string]any:
		b, ok := b.(map[string]any)
		require.True(t, ok)
		require.Len(t, b, len(a))
		for name := range a {
			require.Contains(t, b, name)
			requireSame(t, a[name], b[name])
		}
	default:
		require.Equal(t, a, b)
	}
}

// onlyPlainNumbers reports whether RFC 8785 rounds no number of the value.
func onlyPlainNumbers(v any) bool {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		return err == nil && n > -(1<<53) && n < 1<<53
	case []any:
		for _, item := range v {
			if !onlyPlainNumbers(item) {
				return false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !onlyPlainNumbers(item) {
				return false
			}
		}
	}
	return true
}

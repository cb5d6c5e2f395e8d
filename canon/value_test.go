package canon_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/canon"
)

type inner struct {
	ID   uint64  `json:"id"`
	Note string  `json:"note,omitempty"`
	Rate float64 `json:"rate,omitempty"`
}

type outer struct {
	inner
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Any    any               `json:"any,omitempty"`
	At     time.Time         `json:"at,omitzero"`
	Ptr    *inner            `json:"ptr,omitempty"`
	Text   badText           `json:"text,omitempty"`
	Keys   map[badText]int   `json:"keys,omitempty"`
	Blob   []byte            `json:"blob,omitempty"`
	hidden string
}

// badText writes itself as text that is not UTF-8 when it is "bad".
type badText string

func (b badText) MarshalText() ([]byte, error) {
	if b == "bad" {
		return []byte{0xff}, nil
	}
	return []byte(b), nil
}

type state string

// oneName gives every value the same text.
type oneName int

func (oneName) MarshalText() ([]byte, error) { return []byte("one"), nil }

func TestGoValuesTakeTheFormOfTheirJSON(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"nil", nil, `null`},
		{"nil map", map[string]any(nil), `null`},
		{"nil slice", []any(nil), `null`},
		{"nil raw message", json.RawMessage(nil), `null`},
		{"nil pointer", (*inner)(nil), `null`},
		{"bool", true, `true`},
		{"string", "</\u2028\n", "\"</\u2028\\n\""},
		{"named string", state("IN_DOUBT"), `"IN_DOUBT"`},
		{"json.Number", []any{json.Number("1.50"), json.Number("-0"), json.Number("9007199254740993")}, `[1.5,0,9007199254740993]`},
		{"integers", []any{int(-1), int8(-8), int16(-16), int32(-32), int64(math.MinInt64), uint(1), uint8(8), uint16(16), uint32(32), uint64(math.MaxUint64)},
			`[-1,-8,-16,-32,-9223372036854775808,1,8,16,32,18446744073709551615]`},
		{"floats", []any{1.0, 0.1, math.Copysign(0, -1), 1e-7, float32(0.1), float64(1<<53 - 1)}, `[1,0.1,0,1e-7,0.1,9007199254740991]`},
		{"raw message", map[string]any{"b": json.RawMessage(` {"y":1.0,"x":[ ]} `), "a": 1}, `{"a":1,"b":{"x":[],"y":1}}`},
		{"UTF-16 order", map[string]any{"\ufb33": 1, "😀": 2}, "{\"😀\":2,\"\ufb33\":1}"},
		{"typed map in UTF-16 order", map[string]int{"\ufb33": 1, "😀": 2}, "{\"😀\":2,\"\ufb33\":1}"},
		{"struct", outer{inner: inner{ID: math.MaxUint64, Note: "<&>"}, Raw: json.RawMessage(`{"b":1e0,"a":"\ufffd"}`), Labels: map[string]string{"z": "1", "a": "2"}, hidden: "\xff"},
			`{"id":18446744073709551615,"labels":{"a":"2","z":"1"},"note":"<&>","raw":{"a":"` + "\ufffd" + `","b":1}}`},
		{"pointers and interfaces", &outer{Any: []any{&inner{ID: 1}, 2.5, nil}, Ptr: &inner{Rate: 0.25}}, `{"any":[{"id":1},2.5,null],"id":0,"ptr":{"id":0,"rate":0.25}}`},
		{"marshalers", map[string]any{"t": time.Unix(0, 0).UTC(), "ip": netip.MustParseAddr("::1")}, `{"ip":"::1","t":"1970-01-01T00:00:00Z"}`},
		{"bytes in a struct", outer{Blob: []byte{0xff}, Text: "ok", Keys: map[badText]int{"k": 1}}, `{"blob":"/w==","id":0,"keys":{"k":1},"text":"ok"}`},
		{"keys that are no strings", []any{map[int]string{10: "b", 9: "a"}, map[netip.Addr]bool{netip.MustParseAddr("::1"): true}}, `[{"10":"b","9":"a"},{"::1":true}]`},
		{"embedded pointers", []any{struct{ *inner }{}, struct{ *inner }{&inner{ID: 1}}, struct {
			*inner `json:"in"`
		}{&inner{ID: 2}}, struct{ state }{"s"}}, `[{},{"id":1},{"in":{"id":2}},{}]`},
		{"typed slice", []map[string]any{{"b": 1, "a": 2}}, `[{"a":2,"b":1}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canon.Value(tt.v)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
			again, err := canon.JSON(got)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(again))
		})
	}
}

func TestGoValuesWithoutAnExactFormAreRefused(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = loop
	type knot struct{ Next *knot }
	tied := &knot{}
	tied.Next = tied
	for _, tt := range []struct {
		name string
		v    any
		err  error
		path string
	}{
		{"NaN", []any{math.NaN()}, canon.ErrNumber, "/0"},
		{"infinity", map[string]any{"f": math.Inf(-1)}, canon.ErrNumber, "/f"},
		{"float that may be a rounded integer", map[string]any{"id": float64(1 << 53)}, canon.ErrNumber, "/id"},
		{"float32 that may be a rounded integer", float32(1 << 24), canon.ErrNumber, ""},
		{"such a float in a struct", map[string]any{"a": []inner{{}, {Rate: 1e300}}}, canon.ErrNumber, "/a/1/rate"},
		{"such a float in an embedded struct", outer{inner: inner{Rate: -1e16}}, canon.ErrNumber, "/rate"},
		{"such a float in an interface", outer{Any: map[string]any{"b": 1e16, "a": 1e17}}, canon.ErrNumber, "/any/a"},
		{"json.Number that is none", json.Number("0x10"), canon.ErrNumber, ""},
		{"empty json.Number", json.Number(""), canon.ErrNumber, ""},
		{"json.Number with space", []any{json.Number("1 ")}, canon.ErrNumber, "/0"},
		{"json.Number without fraction", json.Number("1."), canon.ErrNumber, ""},
		{"json.Number without exponent", json.Number("1e+"), canon.ErrNumber, ""},
		{"json.Number out of bounds", json.Number("1e20000"), canon.ErrNumber, ""},
		{"json.Number out of bounds in a struct", outer{Any: json.Number("1e20000")}, canon.ErrNumber, "/any"},
		{"string not UTF-8", map[string]any{"s": "a\xff"}, canon.ErrInvalidText, "/s"},
		{"name not UTF-8", map[string]any{"s": map[string]any{"\xff": 1}}, canon.ErrInvalidText, "/s/\xff"},
		{"string not UTF-8 in a struct", outer{Ptr: &inner{Note: "\xc0"}}, canon.ErrInvalidText, "/ptr/note"},
		{"string not UTF-8 in a typed map", map[string]string{"b": "\xff", "a": "\xff"}, canon.ErrInvalidText, "/a"},
		{"name not UTF-8 in a typed map", outer{Labels: map[string]string{"\xff": ""}}, canon.ErrInvalidText, "/labels/\xff"},
		{"marshalled text not UTF-8", outer{Text: "bad"}, canon.ErrInvalidText, "/text"},
		{"marshalled name not UTF-8", outer{Keys: map[badText]int{"\xfe": 1}}, canon.ErrInvalidText, "/keys/\xfe"},
		{"duplicate in a raw message in a struct", outer{Raw: json.RawMessage(`{"a":1,"a":1}`)}, canon.ErrDuplicateKey, "/raw/a"},
		{"empty raw message", json.RawMessage{}, canon.ErrSyntax, ""},
		{"bytes", map[string]any{"b": []byte("{}")}, canon.ErrUnsupported, "/b"},
		{"string not UTF-8 behind an embedded pointer", struct{ *inner }{&inner{Note: "\xff"}}, canon.ErrInvalidText, "/note"},
		{"two keys with one name", map[oneName]int{1: 1, 2: 2}, canon.ErrDuplicateKey, "/one"},
		{"channel", map[string]any{"c": make(chan int)}, canon.ErrUnsupported, "/c"},
		{"function", func() {}, canon.ErrUnsupported, ""},
		{"pointer loop", tied, canon.ErrUnsupported, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canon.Value(tt.v)
			assert.Nil(t, got)
			require.ErrorIs(t, err, tt.err)
			var at *canon.Error
			require.ErrorAs(t, err, &at)
			assert.Equal(t, tt.path, at.Path)
		})
	}
	t.Run("slice that contains itself", func(t *testing.T) {
		loop := make([]any, 1)
		loop[0] = loop
		_, err := canon.Value(loop)
		require.ErrorIs(t, err, canon.ErrTooDeep)
	})
	t.Run("map that contains itself", func(t *testing.T) {
		_, err := canon.Value(loop)
		require.ErrorIs(t, err, canon.ErrTooDeep)
	})
}

func TestErrorsAreTheSameEveryTime(t *testing.T) {
	v := map[string]any{}
	typed := map[string]string{}
	for _, name := range []string{"\xff", "\xfe", "a\xff", "\U0001f600\xff", "\uffff\xff", "ok", "\xc0\x80", "zz\xed"} {
		v[name] = 1
		typed[name] = "\xff"
	}
	_, first := canon.Value(v)
	_, firstTyped := canon.Value(typed)
	require.Error(t, first)
	require.Error(t, firstTyped)
	for range 50 {
		_, err := canon.Value(v)
		require.Equal(t, first, err)
		_, err = canon.Value(typed)
		require.Equal(t, firstTyped, err)
	}
}

// TestDecodedValuesAndTheirTextAgree takes any JSON text through Go values and back.
func TestDecodedValuesAndTheirTextAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(jsonText(3).Draw(t, "raw"))
		want, err := canon.JSON(raw)
		require.NoError(t, err)
		v, err := canon.Decode(raw)
		require.NoError(t, err)
		for _, same := range []any{v, json.RawMessage(raw), &v, struct{ any }{v}.any} {
			got, err := canon.Value(same)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
	})
}

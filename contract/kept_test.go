package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestKeep(t *testing.T) {
	long := strings.Repeat("x", 100)
	raw := json.RawMessage(` {"id":9007199254740993,"rest":"` + long + `","list":[{"id":1,"rest":"` + long + `"},{"id":2}],"null":null} `)
	for name, c := range map[string]struct {
		paths []string
		limit int
		want  string
		whole bool
	}{
		"small enough":            {nil, 1000, strings.TrimSpace(string(raw)), true},
		"nothing is referred to":  {nil, 10, "", false},
		"a member, exactly":       {[]string{"id"}, 10, `{"id":9007199254740993}`, false},
		"items, in their places":  {[]string{"list[1].id"}, 10, `{"list":[null,{"id":2}]}`, false},
		"several of one list":     {[]string{"list[1].id", "list[0].id"}, 10, `{"list":[{"id":1},{"id":2}]}`, false},
		"an outer path and inner": {[]string{"list[1]", "list[1].id"}, 10, `{"list":[null,{"id":2}]}`, false},
		"an inner path and outer": {[]string{"list[1].id", "list[1]"}, 10, `{"list":[null,{"id":2}]}`, false},
		"null is a value":         {[]string{"null"}, 10, `{"null":null}`, false},
		"what is not there":       {[]string{"nothing", "id.x", "list[7]", "!"}, 10, "", false},
		"the empty path is all":   {[]string{"id", ""}, 10, strings.TrimSpace(string(raw)), true},
	} {
		t.Run(name, func(t *testing.T) {
			kept := contract.Keep(raw, c.paths, c.limit)
			require.Equal(t, c.want, string(kept.Value))
			require.Equal(t, !c.whole, kept.Reduced)
			require.Equal(t, len(strings.TrimSpace(string(raw))), kept.Size)
			require.Len(t, kept.Digest, 64)
			if c.want == "" {
				require.Equal(t, "null", string(kept.Raw()))
			} else {
				require.Equal(t, c.want, string(kept.Raw()))
			}
		})
	}
	require.Nil(t, contract.Keep(nil, nil, 10))
	require.Nil(t, contract.Keep(json.RawMessage("  "), nil, 10))
	require.Equal(t, "null", string((*contract.Kept)(nil).Raw()))
}

// A path far down a long list of short items is no reason to keep more than there was.
func TestWhatIsKeptIsNeverLargerThanTheValue(t *testing.T) {
	raw := json.RawMessage("[" + strings.Repeat("1,", 1000) + "2]")
	kept := contract.Keep(raw, []string{"[1000]"}, 10)
	require.LessOrEqual(t, len(kept.Value), len(raw))
	value, err := contract.Lookup(kept.Value, []contract.Elem{{Index: 1000, IsItem: true}})
	require.NoError(t, err)
	require.Equal(t, "2", string(value))
}

func TestSlimKeepsTheDigestOfTheWhole(t *testing.T) {
	raw := json.RawMessage(`{"id":1,"more":2,"rest":"` + strings.Repeat("x", 100) + `"}`)
	kept := contract.Keep(raw, nil, 1000)
	require.Same(t, kept, kept.Slim([]string{"id"}, 1000), "small enough")

	slim := kept.Slim([]string{"id", "more"}, 10)
	require.JSONEq(t, `{"id":1,"more":2}`, string(slim.Value))
	require.True(t, slim.Reduced)
	require.Equal(t, kept.Digest, slim.Digest)
	require.Equal(t, kept.Size, slim.Size)

	slimmer := slim.Slim([]string{"id"}, 0)
	require.JSONEq(t, `{"id":1}`, string(slimmer.Value))
	require.Equal(t, kept.Digest, slimmer.Digest)
	require.Equal(t, kept.Size, slimmer.Size)
	require.Nil(t, (*contract.Kept)(nil).Slim(nil, 0))
}

func TestHoldsTellsWhatIsStillExact(t *testing.T) {
	raw := json.RawMessage(`{"id":1,"deep":{"x":2},"rest":"` + strings.Repeat("x", 100) + `"}`)
	elems := func(text string) []contract.Elem {
		parsed, err := contract.ParseElems(text)
		require.NoError(t, err)
		return parsed
	}
	paths := []string{"id", "deep"}
	reduced := contract.Keep(raw, paths, 10)
	require.True(t, reduced.Holds(elems("id"), paths))
	require.True(t, reduced.Holds(elems("deep.x"), paths), "inside of what was kept")
	require.False(t, reduced.Holds(elems("rest"), paths))
	require.False(t, reduced.Holds(nil, paths), "not the whole")
	whole := contract.Keep(raw, paths, 1000)
	require.True(t, whole.Holds(nil, paths))
	require.True(t, (*contract.Kept)(nil).Holds(elems("x"), nil), "there is nothing that could have been left out")
}

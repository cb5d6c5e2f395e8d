package nearest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheNearestNameIsSuggestedAndAFarOneIsNot(t *testing.T) {
	known := []string{"timeout", "retries", "settle", "inspect", "compensate", "key", "logical_keys", "id"}
	for _, c := range []struct{ typed, meant string }{
		{"retires", "retries"},
		{"retry", ""},
		{"timeuot", "timeout"},
		{"Timeout", "timeout"},
		{"keys", "key"},
		{"logicalKeys", "logical_keys"},
		{"logical-keys", "logical_keys"},
		{"compensator", "compensate"},
		{"description", ""},
		{"x", ""},
		{"", ""},
	} {
		assert.Equal(t, c.meant, Name(c.typed, known), c.typed)
	}
	assert.Equal(t, `did you mean "settle"?`, Hint("setle", known))
	assert.Empty(t, Hint("zzzzzzzz", known))
	assert.Empty(t, Name("anything", nil))
}

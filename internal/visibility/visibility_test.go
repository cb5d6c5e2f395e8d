package visibility_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/visibility"
)

func TestAttributesCountOnlyIfAllAreThereAndOfTheRightType(t *testing.T) {
	require.True(t, visibility.Registered(visibility.Attributes))
	for name := range visibility.Attributes {
		without := maps.Clone(visibility.Attributes)
		delete(without, name)
		require.False(t, visibility.Registered(without), "without %s", name)
	}
	other := maps.Clone(visibility.Attributes)
	other[contract.SearchTools] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	require.False(t, visibility.Registered(other))
}

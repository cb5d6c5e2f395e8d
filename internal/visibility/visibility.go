// Package visibility knows MCPx's search attributes as Temporal's visibility store has to hold them.
package visibility

import (
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mcpx-go/mcpx/contract"
)

// Attributes are MCPx's search attributes and what they must be.
var Attributes = map[string]enumspb.IndexedValueType{
	contract.SearchState: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	contract.SearchPlan:  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	contract.SearchTools: enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}

// Registered tells whether a namespace with these custom search attributes has all of MCPx's, of the right type. One
// that is missing, or of another type, must not be set: the server refuses the whole workflow task, again and again.
func Registered(custom map[string]enumspb.IndexedValueType) bool {
	for name, kind := range Attributes {
		if custom[name] != kind {
			return false
		}
	}
	return true
}

package sdk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/visibility"
)

// attributesRecheck is how long search attributes that were missing are taken to be so: a worker may register them.
const attributesRecheck = time.Minute

// attributes is what is known of MCPx's search attributes in the namespace.
type attributes struct {
	mu      sync.Mutex
	checked time.Time // zero: not yet
	have    bool
}

// Indexed tells whether MCPx's search attributes are registered in the namespace, so that lists can be filtered by
// state. Where the server does not say, they are taken to be there until it refuses one.
func (c *Client) Indexed(ctx context.Context) bool {
	a := &c.attributes
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.checked.IsZero() && (a.have || time.Since(a.checked) < attributesRecheck) {
		return a.have
	}
	response, err := call(ctx, func(ctx context.Context) (*operatorservice.ListSearchAttributesResponse, error) {
		return c.temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: c.namespace})
	})
	if err != nil && isPassing(err) {
		return a.have
	}
	a.checked = time.Now()
	a.have = err != nil || visibility.Registered(response.GetCustomAttributes())
	return a.have
}

// indexed does what may use the search attributes, and does it again without them where the server refuses them.
func (c *Client) indexed(ctx context.Context, do func(indexed bool) error) error {
	if !c.Indexed(ctx) {
		return do(false)
	}
	err := do(true)
	if !isAttributeMissing(err) {
		return err
	}
	c.attributes.mu.Lock()
	c.attributes.checked, c.attributes.have = time.Now(), false
	c.attributes.mu.Unlock()
	return do(false)
}

// isAttributeMissing tells whether the server refused a call because it does not know one of the search attributes.
func isAttributeMissing(err error) bool {
	invalid, ok := errors.AsType[*serviceerror.InvalidArgument](err)
	if !ok {
		return false
	}
	for name := range visibility.Attributes {
		if strings.Contains(invalid.Message, name) {
			return true
		}
	}
	return false
}

var (
	searchState = temporal.NewSearchAttributeKeyKeyword(contract.SearchState)
	searchPlan  = temporal.NewSearchAttributeKeyKeyword(contract.SearchPlan)
	searchTools = temporal.NewSearchAttributeKeyKeywordList(contract.SearchTools)

	noSearchAttributes = temporal.NewSearchAttributes()
)

// searchAttributes of a transaction that starts.
func searchAttributes(def contract.Definition) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		searchState.ValueSet(string(contract.TxRunning)),
		searchPlan.ValueSet(contract.Keyword(def.Plan)),
		searchTools.ValueSet(def.SearchTools()),
	)
}

// searchPayloads are the same, as the service itself takes them.
func searchPayloads(def contract.Definition) (*commonpb.SearchAttributes, error) {
	fields := map[string]*commonpb.Payload{}
	for name, value := range map[string]any{
		contract.SearchState: string(contract.TxRunning),
		contract.SearchPlan:  contract.Keyword(def.Plan),
		contract.SearchTools: def.SearchTools(),
	} {
		payload, err := codec.ToPayload(value)
		if err != nil {
			return nil, err
		}
		payload.Metadata["type"] = []byte(visibility.Attributes[name].String())
		fields[name] = payload
	}
	return &commonpb.SearchAttributes{IndexedFields: fields}, nil
}

// attribute reads a search attribute of type Keyword; "" where it is not set.
func attribute(found *commonpb.SearchAttributes, name string) string {
	var value string
	if payload, ok := found.GetIndexedFields()[name]; ok {
		_ = codec.FromPayload(payload, &value) // another type is as good as none
	}
	return value
}

// attributeList reads a search attribute of type KeywordList. A list of one may come as the value itself.
func attributeList(found *commonpb.SearchAttributes, name string) []string {
	payload, ok := found.GetIndexedFields()[name]
	if !ok {
		return nil
	}
	var values []string
	if codec.FromPayload(payload, &values) == nil {
		return values
	}
	return slices.DeleteFunc([]string{attribute(found, name)}, func(s string) bool { return s == "" })
}

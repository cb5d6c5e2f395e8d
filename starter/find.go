package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

const (
	// maxAmbiguous is how many IDs of the same beginning are named, and maxBegin how many are counted.
	maxAmbiguous = 10
	maxBegin     = 100
)

// find is the ID that a person meant: the given one, where there is such a transaction, else the only one that begins
// so. One that nothing begins with is returned as it is: whoever looks for it says that it is not there.
func find(ctx context.Context, c *sdk.Client, id string) (string, error) {
	if id == "" {
		return "", usagef("the ID is empty: `mcpx list` shows the IDs")
	}
	_, err := c.Temporal().DescribeWorkflow(ctx, id, "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); !missing {
		return id, nil // it is there, or whoever looks for it says what is wrong
	}
	switch found := begin(ctx, c, id); len(found) {
	case 0:
		return id, nil
	case 1:
		return found[0], nil
	default:
		return "", ambiguous(id, found)
	}
}

// ambiguous is the error for a beginning that the given IDs have in common.
func ambiguous(id string, found []string) error {
	count := fmt.Sprint(len(found))
	if len(found) > maxBegin {
		count = fmt.Sprintf("more than %d", maxBegin)
	}
	var shown []string
	for _, full := range found[:min(len(found), maxAmbiguous)] {
		shown = append(shown, screen.Clean(view.ShortID(full)))
	}
	names := strings.Join(shown, ", ")
	if len(found) > len(shown) {
		names += ", …"
	}
	return usagef("%s transactions begin with %s: %s. Give more of the ID", count, id, names)
}

// begin lists the IDs that begin so, in order; where there are more than maxBegin, not all of them. Each counts once,
// however often it was run. A server that cannot look for beginnings takes whole IDs only.
func begin(ctx context.Context, c *sdk.Client, id string) (found []string) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.Namespace(), PageSize: maxBegin + 1,
		Query: fmt.Sprintf("WorkflowType = '%s' AND WorkflowId STARTS_WITH %s", contract.WorkflowTransaction, quoted(id)),
	}
	for {
		page, err := c.Temporal().ListWorkflow(ctx, request)
		if err != nil {
			return nil
		}
		for _, info := range page.GetExecutions() {
			found = append(found, info.GetExecution().GetWorkflowId())
		}
		slices.Sort(found)
		found = slices.Compact(found)
		request.NextPageToken = page.GetNextPageToken()
		if len(found) > maxBegin || len(request.NextPageToken) == 0 {
			return found
		}
	}
}

// quoted writes a text for Temporal's query language.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// open connects to Temporal and finds the transaction that a person meant.
func (a *App) open(ctx context.Context, id string) (*sdk.Client, string, error) {
	c, err := a.client(ctx)
	if err != nil {
		return nil, "", err
	}
	full, err := find(ctx, c, id)
	if err != nil {
		c.Close()
		return nil, "", err
	}
	return c, full, nil
}

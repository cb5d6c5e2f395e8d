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

// maxAmbiguous is how many IDs of the same beginning are named.
const maxAmbiguous = 10

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
	found, more := begin(ctx, c, id)
	switch {
	case len(found) == 0:
		return id, nil
	case len(found) == 1 && !more:
		return found[0], nil
	}
	shown := found[:min(len(found), maxAmbiguous)]
	for i, full := range shown {
		shown[i] = screen.Clean(view.ShortID(full))
	}
	return "", usagef("%d transactions begin with %s: %s. Give more of the ID", len(found), id, strings.Join(shown, ", "))
}

// begin lists the IDs that begin so, in order, and whether there may be more. A server that cannot look for beginnings
// takes whole IDs only.
func begin(ctx context.Context, c *sdk.Client, id string) (found []string, more bool) {
	page, err := c.Temporal().ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.Namespace(), PageSize: 100,
		Query: fmt.Sprintf("WorkflowType = '%s' AND WorkflowId STARTS_WITH %s", contract.WorkflowTransaction, quoted(id)),
	})
	if err != nil {
		return nil, false
	}
	for _, info := range page.GetExecutions() {
		found = append(found, info.GetExecution().GetWorkflowId())
	}
	slices.Sort(found)
	return slices.Compact(found), len(page.GetNextPageToken()) > 0
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

package starter

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// List lists transactions.
func List(a *App) *cobra.Command {
	var filter sdk.ListFilter
	var state string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List transactions, newest first",
		Example: "  mcpx list --state AWAITING_COMPENSATION_APPROVAL",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" {
				parsed, err := sdk.ParseState(state)
				if err != nil {
					return usagef("--state: %w", err)
				}
				filter.State = parsed
			}
			if filter.Limit < 1 {
				return usagef("--limit %d: list at least one", filter.Limit)
			}
			return a.list(cmd.Context(), filter)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in this `STATE`")
	cmd.Flags().StringVar(&filter.Plan, "plan", "", "only those of this `PLAN`")
	cmd.Flags().StringVar(&filter.Tool, "tool", "", "only those that use this `SERVER/TOOL`")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "`N` at most")
	return cmd
}

func (a *App) list(ctx context.Context, filter sdk.ListFilter) error {
	c, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	listing, err := c.List(ctx, filter)
	if err != nil {
		return err
	}
	if listing.Transactions == nil {
		listing.Transactions = []sdk.Summary{}
	}
	if listing.Note != "" {
		a.say("%s", a.Err.Wrap(screen.Clean(listing.Note), 0))
	}
	if len(listing.Transactions) == 0 {
		a.say("no transactions")
	}
	err = a.result(listing, func() string {
		if len(listing.Transactions) == 0 {
			return ""
		}
		rows := make([]view.Row, len(listing.Transactions))
		for i, tx := range listing.Transactions {
			rows[i] = view.Row{ID: tx.ID, State: tx.State, Started: tx.Started, Ended: tx.Closed}
		}
		return view.List(a.Out, rows, time.Now())
	})
	if err == nil && len(listing.Next) > 0 {
		a.say("there are more: --limit shows them")
	}
	return err
}

package starter

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// Approve approves what a transaction asks for: its start, or its undo plan.
func Approve(a *App) *cobra.Command {
	var flags decideFlags
	var digest string
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve the start or the undo plan of a transaction",
		Long: "Approves what the transaction asks for. An undo plan is approved by its digest: what is undone is exactly what was\n" +
			"looked at. Without --digest it is shown here and you are asked; where nobody can be asked, say --digest or --yes.",
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given(cmd, "digest"); err != nil {
				return err
			}
			return a.decide(cmd.Context(), args[0], flags, func(ctx context.Context, c *sdk.Client, id string, d contract.Decision) (contract.Judged, error) {
				d.Digest = digest
				return a.approve(ctx, c, id, d, yes)
			})
		},
	}
	flags.bind(cmd)
	cmd.Flags().StringVar(&digest, "digest", "", "`DIGEST` of the undo plan, or its first 12 characters")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve the undo plan as it is now, without being asked")
	return cmd
}

func (a *App) approve(ctx context.Context, c *sdk.Client, id string, d contract.Decision, yes bool) (contract.Judged, error) {
	tx, err := c.Snapshot(ctx, id)
	if err != nil {
		return contract.Judged{}, err
	}
	if tx.State == contract.TxAwaitingStartApproval {
		return c.ApproveStart(ctx, id, d)
	}
	if d.Digest != "" {
		return c.Approve(ctx, id, d) // the transaction says whether that is the plan
	}
	if tx.State != contract.TxAwaitingCompensationApproval {
		return contract.Judged{}, nothingToDecide(tx)
	}
	if tx.Undo == nil {
		return contract.Judged{}, fmt.Errorf("the undo plan of %s cannot be seen, since no worker answers: start one with `mcpx worker`, or name the plan with --digest", id)
	}
	if !yes {
		if !a.Interactive {
			return contract.Judged{}, usagef("nobody can be asked here: look at the undo plan with `mcpx status %s`, then name its --digest, or say --yes", screen.Shell(id))
		}
		a.Err.Print(view.Headline(a.Err, tx) + view.Undo(a.Err, *tx.Undo))
		ok, err := a.confirm(ctx, "Undo exactly this?")
		if err != nil {
			return contract.Judged{}, err
		}
		if !ok {
			return contract.Judged{}, errDeclined
		}
	}
	d.Digest = tx.Undo.Digest
	return c.Approve(ctx, id, d)
}

// nothingToDecide is the error for a decision that nobody asks for.
func nothingToDecide(tx contract.Snapshot) error {
	what := fmt.Sprintf("%s is %s", tx.ID, tx.State)
	if tx.State == contract.TxAwaitingResolution {
		return fmt.Errorf("%s: say what became of its steps with `mcpx resolve` (see mcpx status %s)", what, screen.Shell(tx.ID))
	}
	return fmt.Errorf("%s: nothing waits for approval (%s)", what, tx.State.Meaning())
}

// Reject declines what a transaction asks for: its start, or its rollback.
func Reject(a *App) *cobra.Command {
	var flags decideFlags
	var digest string
	cmd := &cobra.Command{
		Use:   "reject ID",
		Short: "Decline the start or the rollback of a transaction",
		Long:  "Declines what the transaction asks for. A declined start never happens; after a declined rollback the effects stay.",
		Args:  exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given(cmd, "digest"); err != nil {
				return err
			}
			return a.decide(cmd.Context(), args[0], flags, func(ctx context.Context, c *sdk.Client, id string, d contract.Decision) (contract.Judged, error) {
				d.Digest = digest
				tx, err := c.Snapshot(ctx, id)
				switch {
				case err != nil:
					return contract.Judged{}, err
				case tx.State == contract.TxAwaitingStartApproval:
					return c.RejectStart(ctx, id, d)
				case tx.State == contract.TxAwaitingCompensationApproval, digest != "":
					return c.Reject(ctx, id, d)
				}
				return contract.Judged{}, nothingToDecide(tx)
			})
		},
	}
	flags.bind(cmd)
	cmd.Flags().StringVar(&digest, "digest", "", "`DIGEST` of the undo plan that is declined, or its first 12 characters")
	return cmd
}

// Resume tries failed steps again instead of rolling back.
func Resume(a *App) *cobra.Command {
	var flags decideFlags
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Try the failed steps again instead of rolling back",
		Args:  exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args[0], flags, func(ctx context.Context, c *sdk.Client, id string, d contract.Decision) (contract.Judged, error) {
				return c.Resume(ctx, id, d)
			})
		},
	}
	flags.bind(cmd)
	return cmd
}

// Abort stops a transaction in order.
func Abort(a *App) *cobra.Command {
	var flags decideFlags
	cmd := &cobra.Command{
		Use:   "abort ID",
		Short: "Stop a transaction: start nothing new, settle, then ask about the rollback",
		Args:  exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args[0], flags, func(ctx context.Context, c *sdk.Client, id string, d contract.Decision) (contract.Judged, error) {
				return c.Abort(ctx, id, d)
			})
		},
	}
	flags.bind(cmd)
	return cmd
}

package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// Receipt shows what remains of a closed transaction.
func Receipt(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "receipt ID",
		Short: "Show the receipt of a closed transaction",
		Long: "Shows the outcome of a closed transaction with the evidence for it. The exit code is the transaction's; 3 where it\n" +
			"waits for a human, and so has none yet. The beginning of an ID will do.",
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.receipt(cmd.Context(), args[0]) },
	}
}

func (a *App) receipt(ctx context.Context, id string) error {
	c, id, err := a.open(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	receipt, err := c.Receipt(ctx, id)
	if errors.Is(err, sdk.ErrNotClosed) {
		return notClosed(ctx, c, id, err)
	}
	if err != nil {
		return err
	}
	err = a.result(receipt, func() string {
		text := view.Snapshot(a.Out, receipt.Snapshot, view.Detail{Now: time.Now(), Evidence: true})
		return text + "\n" + a.Out.Paint(screen.Faint, fmt.Sprintf("%s, SHA-256 %s", screen.Clean(receipt.Format), screen.Clean(receipt.Digest)))
	})
	if err != nil {
		return err
	}
	return exit(view.ExitCode(receipt.State))
}

// notClosed says whether the transaction goes on or waits for a human.
func notClosed(ctx context.Context, c *sdk.Client, id string, err error) error {
	tx, lookErr := c.Snapshot(ctx, id)
	if lookErr == nil && tx.State.NeedsHuman() {
		return &exitError{view.ExitWaiting, fmt.Errorf("%w: it is %s: mcpx status %s", sdk.ErrNotClosed, tx.State, screen.Shell(id))}
	}
	return err
}

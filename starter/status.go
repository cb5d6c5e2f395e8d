package starter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// Status shows a transaction as it stands.
func Status(a *App) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Show a transaction as it stands",
		Long: "Shows a transaction: its state and why, its steps, the undo plan that waits for approval, and what to type next. With\n" +
			"-v also arguments, results, every call that was made, and what humans decided. The beginning of an ID will do.\n\n" +
			"With --watch it shows how the transaction goes on, until it is closed or waits for a human, and the exit code is the\n" +
			"transaction's; without, the exit code says only whether there is such a transaction.",
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.status(cmd.Context(), args[0], watch) },
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show how it goes on")
	return cmd
}

// statusView is a transaction with what it waits for from Temporal's point of view.
type statusView struct {
	contract.Snapshot
	Pending *sdk.Pending `json:"pending,omitempty"`
}

func (a *App) status(ctx context.Context, id string, watch bool) error {
	c, id, err := a.open(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	if watch {
		return a.watch(ctx, c, id)
	}
	tx, err := c.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	status := statusView{Snapshot: tx}
	if !tx.State.Closed() {
		pending, err := c.Pending(ctx, id)
		if err != nil {
			return err
		}
		status.Pending = &pending
	}
	return a.result(status, func() string {
		return view.Snapshot(a.Out, tx, view.Detail{Now: time.Now(), Evidence: a.Verbose}) + missing(a.Out, status.Pending)
	})
}

func (a *App) watch(ctx context.Context, c *sdk.Client, id string) error {
	tx, err := a.follow(ctx, c, id, a.Out, true, contract.Snapshot{})
	if err != nil {
		return err
	}
	if !a.JSON {
		a.Out.Print(strings.TrimRight(view.Snapshot(a.Out, tx, view.Detail{Now: time.Now(), Evidence: a.Verbose}), "\n"))
	}
	return exit(view.ExitCode(tx.State))
}

// missing says which workers a transaction waits for in vain.
func missing(s *screen.Screen, pending *sdk.Pending) string {
	if pending == nil {
		return ""
	}
	var b strings.Builder
	for _, queue := range pending.Missing() {
		fmt.Fprintf(&b, "\n%s %s: start one with %s\n", s.Paint(screen.Wait, "Waiting:"), screen.Clean(queue.Why()), s.Paint(screen.Mark, "mcpx worker"))
	}
	return b.String()
}

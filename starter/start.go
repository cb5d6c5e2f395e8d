package starter

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// startFlags are the flags of Start.
type startFlags struct {
	input       inputFlags
	key, by     string
	again, wait bool
}

// Start starts a transaction.
func Start(a *App) *cobra.Command {
	var flags startFlags
	cmd := &cobra.Command{
		Use:   "start PLAN",
		Short: "Start a transaction, or find the one of the same intent",
		Long: "Starts the plan with the given input. The same intent is carried out once: where it runs already this attaches to\n" +
			"it, and where it was carried out its outcome is replayed. With --wait, the exit code is the transaction's.",
		Example: "  mcpx start provision-workspace -i workspace=acme --wait",
		Args:    exactly("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given(cmd, "id", "input"); err != nil {
				return err
			}
			return a.start(cmd.Context(), args[0], flags)
		},
	}
	flags.input.bind(cmd)
	cmd.Flags().StringVar(&flags.key, "id", "", "your own `KEY` for the intent, in place of the plan's logical keys")
	cmd.Flags().BoolVar(&flags.again, "again", false, "do it once more where it was done before")
	cmd.Flags().BoolVar(&flags.wait, "wait", false, "wait until it is closed or waits for a human")
	cmd.Flags().StringVar(&flags.by, "by", whoami(), "`WHO` asks for it")
	return cmd
}

// whoami is the name of the user of this process, "" where it is not known.
func whoami() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return ""
}

// startedView is what Start found out.
type startedView struct {
	sdk.Started
	State    contract.TxState   `json:"state,omitempty"`
	Snapshot *contract.Snapshot `json:"snapshot,omitempty"`
}

func (a *App) start(ctx context.Context, plan string, flags startFlags) error {
	m, err := a.manifest()
	if err != nil {
		return err
	}
	resolved, err := a.resolve(m, plan, flags.input)
	if err != nil {
		return err
	}
	if flags.key != "" {
		if _, _, err := m.IdentityFor(plan, resolved.Input, flags.key); err != nil {
			return fmt.Errorf("--id: %w", err)
		}
	}
	c, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	started, err := c.Start(ctx, sdk.StartRequest{
		Plan: plan, Input: resolved.Input, Key: flags.key, Again: flags.again, Requester: flags.by, Manifest: m,
	})
	if err != nil && ctx.Err() != nil && cancelled(err) {
		return interruptedf(ctx, "it is not known whether the transaction was started. The same command again finds it, or starts it")
	}
	if err != nil {
		return err
	}
	result := startedView{Started: started}
	if started.Receipt != nil {
		result.State = started.Receipt.State
	}
	if !flags.wait {
		return a.result(result, func() string { return startedText(a.Out, result) })
	}
	tx, err := a.outcome(ctx, c, started)
	if err != nil {
		return err
	}
	result.Snapshot, result.State = &tx, tx.State
	err = a.result(result, func() string {
		text := view.Snapshot(a.Out, tx, view.Detail{Now: time.Now(), Evidence: a.Verbose})
		if started.How == sdk.Replayed {
			text += "\n" + a.Out.Paint(screen.Faint, "Replayed: it had been carried out before, and nothing was called.") + "\n"
		}
		return text
	})
	if err != nil {
		return err
	}
	return exit(view.ExitCode(tx.State))
}

// outcome waits for what was started.
func (a *App) outcome(ctx context.Context, c *sdk.Client, started sdk.Started) (contract.Snapshot, error) {
	if started.Receipt != nil {
		return started.Receipt.Snapshot, nil
	}
	if started.How == sdk.Attached {
		a.say("it is under way already: attached")
	}
	return a.follow(ctx, c, started.ID, a.Err, false, contract.Snapshot{})
}

func startedText(s *screen.Screen, result startedView) string {
	how := map[sdk.How]string{
		sdk.StartedNew: "started", sdk.Attached: "under way already", sdk.Replayed: "carried out before",
	}[result.How]
	head := fmt.Sprintf("%s  %s", s.Paint(screen.Bold, screen.Clean(result.ID)), how)
	if result.State != "" {
		head += ", " + view.State(s, result.State)
	}
	next := "watch it: mcpx status %s --watch"
	if result.State.Closed() {
		next = "its receipt: mcpx receipt %s"
	}
	return head + "\n  " + s.Paint(screen.Mark, fmt.Sprintf(next, screen.Shell(result.ID)))
}

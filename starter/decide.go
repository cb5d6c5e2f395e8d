package starter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// decideFlags are the flags that every decision has.
type decideFlags struct {
	by, reason string
	wait       bool
}

func (f *decideFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.by, "by", whoami(), "`WHO` decides")
	cmd.Flags().StringVar(&f.reason, "reason", "", "`WHY`, kept with the transaction")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until it is closed or waits for a human again; the exit code is the transaction's")
}

func (f *decideFlags) decision() (contract.Decision, error) {
	if strings.TrimSpace(f.by) == "" {
		return contract.Decision{}, usagef("say who decides: --by WHO")
	}
	return contract.Decision{By: f.by, Reason: f.reason}, nil
}

// decided is what became of a decision.
type decided struct {
	ID string `json:"id"`
	contract.Judged
	Snapshot *contract.Snapshot `json:"snapshot,omitempty"`
}

// decide carries a decision to the transaction that a person meant, and shows what became of it.
func (a *App) decide(ctx context.Context, id string, flags decideFlags,
	send func(ctx context.Context, c *sdk.Client, id string, d contract.Decision) (contract.Judged, error),
) error {
	d, err := flags.decision()
	if err != nil {
		return err
	}
	c, id, err := a.open(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	var before contract.Snapshot // what has happened so far is no news to whoever decides
	if flags.wait {
		if before, err = c.Snapshot(ctx, id); err != nil {
			return err
		}
	}
	judged, err := send(ctx, c, id, d)
	if err != nil && ctx.Err() != nil && cancelled(err) {
		return interruptedf(ctx, "it is not known whether the decision arrived: mcpx status %s", screen.Shell(id))
	}
	if err != nil {
		return err
	}
	result := decided{ID: id, Judged: judged}
	if !judged.Accepted {
		a.say("no worker is there to judge it: it was sent, and counts when one does. See mcpx status %s", screen.Shell(id))
		flags.wait = false
	}
	if !flags.wait {
		return a.result(result, func() string {
			return fmt.Sprintf("%s  %s: %s", a.Out.Paint(screen.Bold, screen.Clean(id)), judged.Signal, screen.Clean(judged.Why))
		})
	}
	tx, err := a.follow(ctx, c, id, a.Err, false, before)
	if err != nil {
		return err
	}
	result.Snapshot = &tx
	err = a.result(result, func() string {
		return view.Snapshot(a.Out, tx, view.Detail{Now: time.Now(), Evidence: a.Verbose})
	})
	if err != nil {
		return err
	}
	return exit(view.ExitCode(tx.State))
}

// errDeclined: the person said no to the question whether to go on.
var errDeclined = errors.New("not approved: nothing was sent")

// confirm asks a person; anything but yes is no.
func (a *App) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.Err, a.Err.Paint(screen.Wait, question)+" [y/N] ")
	type reply struct {
		line string
		err  error
	}
	replies := make(chan reply, 1)
	go func() { // it ends with the process, where nobody answers
		line, err := bufio.NewReader(a.In).ReadString('\n')
		replies <- reply{line, err}
	}()
	var answer reply
	select {
	case answer = <-replies:
	case <-ctx.Done():
		a.Err.Print("")
		return false, interruptedf(ctx, "nothing was sent")
	}
	if answer.err != nil {
		a.Err.Print("")
		if !errors.Is(answer.err, io.EOF) {
			return false, fmt.Errorf("read the answer: %w", answer.err)
		}
	}
	switch strings.ToLower(strings.TrimSpace(answer.line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// What the demonstration is about: the plan, and what goes wrong in it.
const (
	demoPlan  = "provision-workspace"
	demoInput = `{"workspace":"acme"}`
)

var demoFaults = []struct {
	kind  workspace.Kind
	fault workspace.Fault
	about string
}{
	{workspace.Routing, workspace.Fault{Tool: "create_route", Fault: workspace.LoseAck, Calls: 1}, "commits the route, and loses the acknowledgement"},
	{workspace.Frontend, workspace.Fault{Tool: "deploy", Fault: workspace.Reject, Calls: 1}, "rejects the deployment"},
}

// demoFlags are the flags of Demo.
type demoFlags struct {
	yes, keep bool
}

// Demo tells in the terminal what MCPx does, on real servers.
func Demo(a *App) *cobra.Command {
	var flags demoFlags
	cmd := &cobra.Command{
		Use:   "demo [workspace]",
		Short: "Watch a lost reply being handled, on real servers",
		Long: "Runs an embedded Temporal and four applications, provisions a workspace, and lets two things go wrong: one application\n" +
			"commits and loses its acknowledgement, another one rejects its call. You are asked whether to undo the rest. At the\n" +
			"end the applications themselves are asked what exists. Exit code 0 when everything ended as the story says.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "workspace" {
				return usagef("there is no demonstration %q%s: mcpx demo workspace", args[0], didYouMean(nearNames(args[0], []string{"workspace"})))
			}
			if len(args) > 1 {
				return usagef("%s tells one story at a time", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), flags) },
	}
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "approve the rollback without being asked, for scripts")
	cmd.Flags().BoolVar(&flags.keep, "keep", false, "leave everything running at the end, until Ctrl-C")
	return cmd
}

// demo is one run of the demonstration.
type demo struct {
	app   *App
	flags demoFlags
	// to is where the story is told.
	to    *screen.Screen
	stack *stack.Stack
	told  narrator
	story demoStory
}

// demoStory is what happened, for programs.
type demoStory struct {
	OK      bool              `json:"ok"`
	State   contract.TxState  `json:"state"`
	ID      string            `json:"id"`
	Run     string            `json:"run"`
	UI      string            `json:"ui,omitempty"`
	Address string            `json:"address,omitempty"`
	Proofs  []proof           `json:"proofs"`
	Apps    []appState        `json:"applications"`
	Receipt *contract.Receipt `json:"receipt,omitempty"`
}

func (a *App) demo(ctx context.Context, flags demoFlags) (err error) {
	d := &demo{app: a, flags: flags, to: a.Out}
	if a.JSON {
		d.to = a.Err
	}
	if a.Quiet {
		d.to = screen.Plainly(io.Discard, 0)
	}
	d.told = narrator{to: d.to}
	m, err := manifest.Parse("mcpx.yaml", a.Examples)
	if err != nil {
		return fmt.Errorf("the built-in manifest: %w", err)
	}
	d.introduce()
	d.stack, err = stack.Start(ctx, stack.Options{
		Manifest: m, Ephemeral: true, UI: true, Apps: true, FreePorts: true, Worker: true, Logger: a.logger(),
	})
	if err != nil {
		return orInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, d.stack.Stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-d.stack.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	if err := d.tell(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	if a.JSON {
		err = a.result(d.story, nil)
	} else {
		d.conclude(a.Out)
	}
	if err != nil {
		return err
	}
	if flags.keep {
		d.keep(ctx)
	}
	if !d.story.OK {
		return exit(view.ExitFailed)
	}
	return nil
}

// orInterrupted is the reason why something was given up: a part that failed, Ctrl-C, or the error itself.
func orInterrupted(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, context.Canceled):
		return interruptedf(ctx, "everything was stopped")
	default:
		return cause
	}
}

func (d *demo) say(format string, args ...any) { d.to.Printf(format, args...) }

func (d *demo) head(title string) { d.say("\n%s", d.to.Paint(screen.Bold, title)) }

func (d *demo) introduce() {
	d.say("%s", d.to.Paint(screen.Bold, "A lost reply"))
	d.say("A workspace needs a database, an instance, a route and a frontend. Each belongs to an application of its own.")
	d.say("Starting Temporal, the four applications and a worker…")
}

// tell tells the story up to the proofs.
func (d *demo) tell(ctx context.Context) error {
	if err := d.arm(ctx); err != nil {
		return err
	}
	d.head("The plan is carried out")
	started, err := d.stack.Client.Start(ctx, sdk.StartRequest{
		Plan: demoPlan, Input: json.RawMessage(demoInput), Requester: whoami(), Manifest: d.stack.Manifest,
	})
	if err != nil {
		return err
	}
	d.story.ID, d.story.Run, d.story.UI, d.story.Address = started.ID, started.Run, d.stack.UIURL, d.stack.Address
	d.say("transaction %s", screen.Clean(started.ID))
	if d.stack.UIURL != "" {
		d.say("in Temporal %s/namespaces/%s/workflows/%s", d.stack.UIURL, d.stack.Namespace, url.PathEscape(started.ID))
	}
	tx, err := d.follow(ctx)
	if err != nil {
		return err
	}
	if tx.State == contract.TxAwaitingCompensationApproval && tx.Undo != nil {
		if tx, err = d.rollBack(ctx, tx); err != nil {
			return err
		}
	}
	d.story.State = tx.State
	if tx.State.Closed() {
		receipt, err := d.stack.Client.Receipt(ctx, started.ID)
		if err != nil {
			return err
		}
		d.story.Receipt = &receipt
	} else {
		d.say("\n%s", view.Snapshot(d.to, tx, view.Detail{Evidence: true}))
	}
	return d.prove(ctx, tx)
}

// arm makes the two things go wrong.
func (d *demo) arm(ctx context.Context) error {
	d.say("  Temporal UI  %s", d.to.Paint(screen.Mark, d.stack.UIURL))
	for _, kind := range d.stack.Kinds() {
		d.say("  %-11s  %s", kind, d.stack.Processes[kind].URL())
	}
	d.head("What goes wrong, once each")
	for _, f := range demoFaults {
		app, ok := d.stack.Apps[f.kind]
		if !ok {
			return fmt.Errorf("the built-in manifest has no server for the %s application", f.kind)
		}
		if err := app.SetFault(ctx, f.fault); err != nil {
			return fmt.Errorf("arm the fault of the %s application: %w", f.kind, err)
		}
		d.say("  %-11s  %s", f.kind, f.about)
	}
	return nil
}

// follow narrates until the transaction goes on by itself no more.
func (d *demo) follow(ctx context.Context) (contract.Snapshot, error) {
	var last contract.Snapshot
	var looked error
	d.told.recovered = func(step string) { looked = errors.Join(looked, d.recovered(ctx, step)) }
	err := d.stack.Client.Watch(ctx, d.story.ID, func(tx contract.Snapshot) error {
		last = tx
		d.told.tell(tx)
		if looked != nil {
			return looked
		}
		if tx.Settled() {
			return errSettled
		}
		return nil
	})
	if errors.Is(err, errSettled) {
		err = nil
	}
	return last, err
}

// rollBack shows the undo plan, asks, and does what the answer says.
func (d *demo) rollBack(ctx context.Context, tx contract.Snapshot) (contract.Snapshot, error) {
	d.head("A human decides")
	d.say("%s is %s: %s", view.ShortID(tx.ID), view.State(d.to, tx.State), screen.Clean(tx.Reason))
	d.say("Nothing is undone before somebody has seen what exactly.")
	d.say("%s", strings.TrimRight(view.Undo(d.to, *tx.Undo), "\n"))
	approved := d.flags.yes
	if approved {
		d.say("\nUndo exactly this? yes (--yes)")
	} else {
		d.say("")
		var err error
		if approved, err = d.app.confirm(ctx, "Undo exactly this?"); err != nil {
			return tx, err
		}
	}
	by := whoami()
	if by == "" {
		by = "demo"
	}
	decision := contract.Decision{By: by, Digest: tx.Undo.Digest}
	decide := d.stack.Client.Approve
	if !approved {
		decide = d.stack.Client.Reject
	}
	judged, err := decide(ctx, tx.ID, decision)
	if err != nil {
		return tx, err
	}
	if !judged.Accepted {
		return tx, fmt.Errorf("the decision was not judged: %s", judged.Why)
	}
	if approved {
		d.head("The rollback, newest first")
	}
	return d.follow(ctx)
}

// keep leaves everything running until somebody has looked enough.
func (d *demo) keep(ctx context.Context) {
	d.app.say("\nEverything is still running. In another terminal:")
	d.app.say("  %s", d.app.Err.Paint(screen.Mark, fmt.Sprintf("mcpx status %s -v --address %s", screen.Shell(view.ShortID(d.story.ID)), d.stack.Address)))
	d.app.say("Ctrl-C stops it.")
	<-ctx.Done()
}

package starter

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/worker"
)

// Worker runs a worker until it is stopped.
func Worker(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Run a worker for the manifest's plans and servers",
		Long: "Runs a worker until it is stopped: it carries out transactions, and makes the calls to the manifest's servers.\n" +
			"Any number of workers may run. The namespace is made where it is missing and this client may do so.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runWorker(cmd.Context()) },
	}
}

func (a *App) runWorker(ctx context.Context) error {
	m, err := a.manifest()
	if err != nil {
		return err
	}
	at, err := a.temporal()
	if err != nil {
		return err
	}
	logger := a.logger()
	at.options.Logger = logger
	at.options.Prepare = func(ctx context.Context, c client.Client, namespace string) error {
		return stack.Prepare(ctx, c, namespace, m, logger)
	}
	c, err := sdk.Dial(ctx, at.options)
	if err != nil {
		return at.explain(err)
	}
	defer c.Close()
	w, err := worker.Start(ctx, worker.Options{Client: c.Temporal(), Namespace: c.Namespace(), Manifest: m, Logger: logger})
	if err != nil {
		return err
	}
	defer w.Stop()
	if a.JSON {
		err = a.line(map[string]any{"namespace": c.Namespace(), "manifest": m.File, "queues": w.Queues()})
	} else {
		a.say("worker for %s at Temporal %s (%s), namespace %s, task queues %s; Ctrl-C stops it",
			m.File, at.options.Address, at.how, c.Namespace(), strings.Join(w.Queues(), ", "))
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		a.say("stopping: calls in flight may finish")
		return nil
	case err := <-w.Failed():
		return err
	}
}

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// readyLine is the one line an application prints on standard output.
type readyLine struct {
	Kind Kind   `json:"kind"`
	URL  string `json:"url"`
	PID  int    `json:"pid"`
}

// Command returns the command that runs one application in this process:
//
//	workspace database --addr 127.0.0.1:9101 --data DIR
//
// Mounted in another program, it lets that program start the applications as
// processes of its own executable: see [Start].
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "workspace",
		Short:  "Run one of the four reference applications",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	for _, app := range Apps() {
		cmd.AddCommand(appCommand(app))
	}
	return cmd
}

func appCommand(app App) *cobra.Command {
	cfg := Config{Kind: app.Kind}
	var exitWithParent bool
	cmd := &cobra.Command{
		Use:   string(app.Kind),
		Short: app.Summary,
		Long: app.Summary + "\n\nPrints one JSON object on standard output when it is ready: " +
			`{"kind": …, "url": …, "pid": …}. Logs go to standard error.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if exitWithParent {
				go func() {
					_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // however it ends, nobody holds the other end
					cancel()
				}()
			}
			var announce error
			cfg.OnReady = func(addr string) {
				announce = json.NewEncoder(cmd.OutOrStdout()).Encode(readyLine{Kind: app.Kind, URL: mcpURL(addr), PID: os.Getpid()})
				if announce != nil {
					cancel()
				}
			}
			cfg.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			err := Serve(ctx, cfg)
			if announce != nil {
				err = errors.Join(err, fmt.Errorf("announce readiness on standard output: %w", announce))
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Addr, "addr", app.Addr(), "address to listen on; port 0 picks a free one")
	flags.StringVar(&cfg.DataDir, "data", "workspace-data", "directory for the SQLite file")
	flags.BoolVar(&exitWithParent, "exit-with-parent", false, "stop when standard input is closed")
	return cmd
}

// Main runs [Command] with the arguments and returns the exit code of the
// process. Errors go to standard error.
func Main(args []string) int {
	cmd := Command()
	cmd.SetArgs(args)
	cmd.SilenceErrors = true
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "workspace:", err)
		return 1
	}
	return 0
}

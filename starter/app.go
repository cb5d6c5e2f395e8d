package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// Commands are listed in the order in which people meet them.
func init() { cobra.EnableCommandSorting = false }

// Command makes one subcommand of mcpx. Other packages make theirs with the same signature.
type Command func(*App) *cobra.Command

// App is what the subcommands share: the streams, and what the global flags say.
type App struct {
	// Examples is the text of the examples' manifest. The demonstration uses it, and so does a development stack where
	// no other manifest is found.
	Examples []byte

	// In is what people type. Out carries results, Err messages and progress.
	In       io.Reader
	Out, Err *screen.Screen
	// Interactive: a person can be asked, and types the answer into In.
	Interactive bool

	// What the global flags say.
	ManifestFile, Address, Namespace, Profile, DataDir string
	JSON, Quiet, Verbose                               bool

	commands []Command
}

// Main runs mcpx with the arguments of this process and returns its exit code. Ctrl-C, SIGTERM and the end of the
// terminal (unless it is ignored) end what runs in order; a second Ctrl-C ends the process at once.
func Main(examples []byte, commands ...Command) int {
	ctx, stop := untilSignalled(context.Background(), endings()...)
	defer stop()
	app := New(examples, os.Stdin, screen.New(os.Stdout), screen.New(os.Stderr), commands...)
	return app.Run(ctx, os.Args[1:])
}

// New makes mcpx with the given streams and subcommands.
func New(examples []byte, in io.Reader, out, err *screen.Screen, commands ...Command) *App {
	file, ok := in.(*os.File)
	return &App{
		Examples: examples, In: in, Out: out, Err: err, commands: commands,
		Interactive: ok && term.IsTerminal(file.Fd()),
	}
}

// Run runs mcpx with the given arguments, without the program's name, and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := orUnwritten(a.Out, orInterruption(ctx, root.ExecuteContext(ctx)))
	code, say := exitCode(err)
	if say {
		a.Err.Printf("%s %s", a.Err.Paint(screen.Bad, "mcpx:"), screen.CleanLines(err.Error()))
	}
	return code
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcpx",
		Short: "Reliability for consequential agent actions",
		Long: "MCPx makes sure that a multi-step operation happens once, is known to have happened, or is provably undone.\n\n" +
			"Exit codes: 0 done · 1 failed · 2 wrong usage · 3 waiting for a human · 4 compensated · 5 unwanted effects remain · 6 conflict ·\n" +
			"130 interrupted by Ctrl-C, 143 by SIGTERM.\n" +
			"`mcpx dev` starts everything that is needed to try it, `mcpx demo` tells what it does.",
		SilenceUsage: true, SilenceErrors: true,
		SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usagef("there is no command %q%s (`mcpx help` lists them)", args[0], didYouMean(cmd.SuggestionsFor(args[0])))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w%s (`%s --help` lists the flags)", err, flagHint(cmd, err), cmd.CommandPath())
	})

	flags := root.PersistentFlags()
	flags.StringVar(&a.ManifestFile, "manifest", os.Getenv(manifest.EnvManifest), "`FILE` of the manifest; else mcpx.yaml in this directory, else that of a running mcpx dev (env MCPX_MANIFEST)")
	flags.StringVar(&a.Address, "address", "", "`ADDRESS` of Temporal, host:port (env TEMPORAL_ADDRESS)")
	flags.StringVar(&a.Namespace, "namespace", "", "Temporal namespace `NAME`; else mcpx (env TEMPORAL_NAMESPACE)")
	flags.StringVar(&a.Profile, "profile", "", "profile `NAME` of temporal.toml (env TEMPORAL_PROFILE)")
	flags.StringVar(&a.DataDir, "data", defaultDataDir(), "`DIR` where mcpx dev keeps its data (env MCPX_DATA)")
	flags.BoolVar(&a.JSON, "json", false, "print JSON for programs instead of text for people")
	flags.BoolVarP(&a.Quiet, "quiet", "q", false, "print no progress")
	flags.BoolVarP(&a.Verbose, "verbose", "v", false, "print more")

	for _, command := range a.commands {
		root.AddCommand(command(a))
	}
	return root
}

// dataDir is where development data goes unless somebody says otherwise: MCPX_DATA, else as the XDG base directories say.
func defaultDataDir() string {
	if dir := os.Getenv("MCPX_DATA"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcpx")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "mcpx")
	}
	return filepath.Join(home, ".local", "share", "mcpx")
}

// flagHint names the flag that was probably meant.
func flagHint(cmd *cobra.Command, err error) string {
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "=")
	return didYouMean(nearFlags(cmd, name))
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(names, " or ") + "?"
}

// exactly is a check of the arguments: as many as there are names, which the message uses.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s needs %s: mcpx %s", cmd.CommandPath(), strings.Join(names[len(args):], " and "), cmd.Use)
		case len(args) > len(names):
			return usagef("%s does not know what to do with %q: mcpx %s", cmd.CommandPath(), args[len(names)], cmd.Use)
		}
		return nil
	}
}

// result writes what a command found out: v as JSON for programs, or the text for people.
func (a *App) result(v any, text func() string) error {
	if a.JSON {
		return a.printJSON(v, "  ")
	}
	if text := strings.TrimRight(text(), "\n"); text != "" {
		a.Out.Print(text)
	}
	return unwritten(a.Out)
}

// line writes v as JSON on one line: one of several.
func (a *App) line(v any) error { return a.printJSON(v, "") }

func (a *App) printJSON(v any, indent string) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result as JSON: %w", err)
	}
	a.Out.Print(strings.TrimSuffix(string(screen.CleanJSON([]byte(b.String()))), "\n"))
	return unwritten(a.Out)
}

// say writes a message for people beside the result.
func (a *App) say(format string, args ...any) {
	if !a.Quiet {
		a.Err.Printf(format, args...)
	}
}

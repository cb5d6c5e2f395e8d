package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// The ports at which Temporal's own tools look for a development server and people for its web UI.
const (
	usualPort   = 7233
	usualUIPort = 8233
)

// devFlags are the flags of Dev.
type devFlags struct {
	ephemeral, noExamples bool
	port, uiPort          int
}

// Dev runs everything that is needed to work with MCPx on one machine.
func Dev(a *App) *cobra.Command {
	var flags devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run Temporal, a worker and the example applications",
		Long: "Runs an embedded Temporal with its web UI, a worker for the manifest, and those of the example applications that\n" +
			"the manifest has as servers, until it is stopped. Everything ends with it. Where no manifest is found, that of the\n" +
			"examples is used. Where --address, TEMPORAL_ADDRESS or a profile names a Temporal, that one is used.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd.Context(), flags) },
	}
	cmd.Flags().BoolVar(&flags.ephemeral, "ephemeral", false, "keep nothing: databases end with it")
	cmd.Flags().BoolVar(&flags.noExamples, "no-examples", false, "do not run the example applications")
	cmd.Flags().IntVar(&flags.port, "port", 0, fmt.Sprintf("`PORT` of Temporal; else %d, or a free one where that is taken", usualPort))
	cmd.Flags().IntVar(&flags.uiPort, "ui-port", 0, fmt.Sprintf("`PORT` of Temporal's web UI; else %d, or a free one where that is taken", usualUIPort))
	return cmd
}

func (a *App) dev(ctx context.Context, flags devFlags) (err error) {
	m, err := a.devManifestOrExamples()
	if err != nil {
		return err
	}
	o := stack.Options{
		Manifest: m, DataDir: a.DataDir, Ephemeral: flags.ephemeral, UI: true,
		Apps: !flags.noExamples, Worker: true, Logger: a.logger(),
	}
	at, err := a.temporal()
	if err != nil {
		return err
	}
	o.Namespace = at.options.Namespace
	if at.chosen {
		o.External = &at.options
	} else if o.Port, o.UIPort, err = devPorts(flags); err != nil {
		return err
	}
	log, err := a.appLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	o.AppLog = log

	a.say("starting…")
	s, err := stack.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return at.explain(explainDev(err))
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if o.External == nil {
		if err := a.writeDevInfo(devInfo{Manifest: absolute(m.File)}); err != nil {
			return err
		}
	}
	if err := a.result(devSummary(s, a.DataDir, flags), func() string { return devText(a.Out, s, a.DataDir, flags) }); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		a.say("stopping…")
		return nil
	case err := <-s.Failed():
		return fmt.Errorf("everything is being stopped: %w", err)
	}
}

// devManifestOrExamples is the manifest to run, or that of the examples where there is none. The latter is written to
// the data directory, so that commands in other terminals find it.
func (a *App) devManifestOrExamples() (*manifest.Manifest, error) {
	path, err := a.findManifest()
	if err == nil {
		return manifest.Load(path)
	}
	if !errors.Is(err, manifest.ErrNoManifest) || os.Getenv(manifest.EnvManifest) != "" {
		return nil, err
	}
	if err := os.MkdirAll(a.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	path = filepath.Join(a.DataDir, "examples.yaml")
	if err := os.WriteFile(path, a.Examples, 0o600); err != nil {
		return nil, fmt.Errorf("manifest of the examples: %w", err)
	}
	a.say("no manifest here: using that of the examples, %s", path)
	return manifest.Load(path)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// devPorts are the ports that were asked for, else the usual ones where they are free, else free ones (0).
func devPorts(flags devFlags) (port, ui int, err error) {
	port, ui = flags.port, flags.uiPort
	for _, asked := range []struct {
		flag string
		port int
	}{{"--port", port}, {"--ui-port", ui}} {
		if asked.port < 0 || asked.port > 65535 {
			return 0, 0, usagef("%s %d is no port", asked.flag, asked.port)
		}
	}
	if port == 0 && free(usualPort) && ui != usualPort {
		port = usualPort
	}
	if ui == 0 && free(usualUIPort) && port != usualUIPort {
		ui = usualUIPort
	}
	return port, ui, nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// appLog is where the example applications log: with --verbose to standard error, else to a file in the data directory.
func (a *App) appLog() (io.WriteCloser, error) {
	if a.Verbose {
		return keepOpen{a.Err}, nil
	}
	if err := os.MkdirAll(a.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(a.DataDir, "apps.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the example applications: %w", err)
	}
	return file, nil
}

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// explainDev says what to do about what most often goes wrong.
func explainDev(err error) error {
	switch {
	case errors.Is(err, workspace.ErrNotReady) && strings.Contains(err.Error(), "address already in use"):
		return fmt.Errorf("%w\nanother program has the port: end it, or start without the applications (--no-examples)", err)
	case errors.Is(err, devserver.ErrInUse):
		return fmt.Errorf("%w (--data names another directory)", err)
	}
	return err
}

// devView is what a development stack consists of.
type devView struct {
	Temporal     string            `json:"temporal,omitempty"`
	UI           string            `json:"ui,omitempty"`
	Namespace    string            `json:"namespace"`
	Data         string            `json:"data,omitempty"`
	Manifest     string            `json:"manifest"`
	Plans        []string          `json:"plans"`
	Applications map[string]string `json:"applications,omitempty"`
	Queues       []string          `json:"queues"`
	PID          int               `json:"pid"`
	TemporalPID  int               `json:"temporalPid,omitempty"`
	AppPIDs      map[string]int    `json:"applicationPids,omitempty"`
}

func devSummary(s *stack.Stack, dataDir string, flags devFlags) devView {
	v := devView{
		Temporal: s.Address, UI: s.UIURL, Namespace: s.Namespace, Manifest: s.Manifest.File, Plans: []string{},
		Applications: map[string]string{}, AppPIDs: map[string]int{}, Queues: s.Worker.Queues(), PID: os.Getpid(),
	}
	if !flags.ephemeral {
		v.Data = dataDir
	}
	if s.Server != nil {
		v.TemporalPID = s.Server.Pid()
	}
	for _, plan := range s.Manifest.Plans {
		v.Plans = append(v.Plans, plan.Name)
	}
	for _, kind := range s.Kinds() {
		v.Applications[string(kind)] = s.Processes[kind].URL()
		v.AppPIDs[string(kind)] = s.Processes[kind].PID()
	}
	return v
}

// devText is the summary for people, with what to type next.
func devText(out *screen.Screen, s *stack.Stack, dataDir string, flags devFlags) string {
	var b strings.Builder
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %s  %s\n", out.Paint(screen.Faint, fmt.Sprintf("%-12s", name)), out.Wrap(screen.Clean(value), 16))
		}
	}
	fmt.Fprintln(&b, out.Paint(screen.Bold, "MCPx is running"))
	fact("Temporal UI", s.UIURL)
	temporal := s.Address
	if temporal == "" {
		temporal = "as the environment says"
	}
	fact("Temporal", temporal+", namespace "+s.Namespace)
	data := dataDir
	if flags.ephemeral {
		data = "kept in memory"
	}
	fact("data", data)
	fact("manifest", s.Manifest.File)
	for _, kind := range s.Kinds() {
		fact(string(kind), s.Processes[kind].URL())
	}
	fact("worker", "in this process, task queues "+strings.Join(s.Worker.Queues(), ", "))
	fmt.Fprintf(&b, "\nNext, in another terminal:\n")
	elsewhere := ""
	if dataDir != defaultDataDir() {
		elsewhere = " --data " + screen.Shell(dataDir) // else another terminal would look for Temporal in another place
	}
	for _, command := range devNext(s) {
		fmt.Fprintf(&b, "  %s\n", out.Paint(screen.Mark, command+elsewhere))
	}
	fmt.Fprintf(&b, "Ctrl-C stops everything.\n")
	return b.String()
}

// devNext are commands that work right away.
func devNext(s *stack.Stack) (commands []string) {
	const example = "provision-workspace"
	switch plans := s.Manifest.Plans; {
	case slices.ContainsFunc(plans, func(p *manifest.Plan) bool { return p.Name == example }):
		commands = append(commands, "mcpx plan "+example+" -i workspace=acme --inspect", "mcpx start "+example+" -i workspace=acme --wait")
	case len(plans) > 0:
		commands = append(commands, "mcpx plan "+plans[0].Name)
	}
	return append(commands, "mcpx list", "mcpx doctor")
}

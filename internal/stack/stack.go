// Package stack runs everything that MCPx needs on one machine: a Temporal server, the example applications as
// processes of their own, and a worker in this process. The development command, the demonstration and the tests use
// the same one.
//
// What a stack started ends with Stop, and with this process however that ends.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/visibility"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/worker"
)

const (
	// workerGrace is how long calls in flight may take to finish when a stack stops. What takes longer is in doubt,
	// and is asked about when a worker runs again.
	workerGrace = 5 * time.Second
	appGrace    = 5 * time.Second
)

// Options say what a stack consists of. Manifest is required.
type Options struct {
	// Manifest says which servers the worker reaches, and decides the namespace's retention.
	Manifest *manifest.Manifest

	// DataDir holds the data of Temporal and of the applications. Empty: a temporary one, which Stop removes.
	DataDir string
	// Ephemeral keeps nothing: Temporal's database is in memory, and the applications' data is removed by Stop. With a
	// DataDir, Temporal's log and address file are still written there.
	Ephemeral bool
	// UI also starts Temporal's web UI.
	UI bool
	// Port and UIPort of the embedded Temporal; 0: free ones.
	Port, UIPort int

	// External is a running Temporal to use in place of an embedded one.
	External *sdk.Options
	// Namespace is contract.Namespace unless set. With External it is what that says.
	Namespace string

	// Apps runs those of the example applications that the manifest has as servers on their default ports.
	Apps bool
	// FreePorts runs them on free ports, and makes the stack's manifest follow.
	FreePorts bool
	// Binary is the command line that leads to the applications' command. Empty: this executable with "example
	// workspace", which is where mcpx has it.
	Binary []string
	// AppLog gets what the applications log; nil for nobody.
	AppLog io.Writer

	// Worker runs a worker in this process.
	Worker bool
	// Logger gets what the worker and Temporal's client have to say; nil for nobody.
	Logger *slog.Logger
}

// Stack is what was started. The fields are not to be changed.
type Stack struct {
	// Address of Temporal, host:port; empty for an external one that only the environment knows.
	Address string
	// UIURL is the address of Temporal's web UI, empty where there is none.
	UIURL string
	// Namespace of the transactions.
	Namespace string
	// Client is connected to the namespace.
	Client *sdk.Client
	// Manifest is the given one, with the servers where the applications really are.
	Manifest *manifest.Manifest

	// Server is the embedded Temporal, nil for an external one.
	Server *devserver.Server
	// Apps reach the applications' fault switches, counters and resources; Processes are the applications themselves.
	Apps      map[workspace.Kind]*workspace.Client
	Processes map[workspace.Kind]*workspace.Process
	// Worker is the worker in this process, nil where none was asked for.
	Worker *worker.Worker

	options    Options
	connection client.Client // closed by Stop; nil where Client does so itself
	temp       string        // removed by Stop

	stopping chan struct{}
	stop     func() error
	failed   chan error
	watchers sync.WaitGroup
}

// Start starts a stack and returns when all of it can be used. The context limits the start alone. Where something does
// not start, everything that did is stopped again.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	if o.Manifest == nil {
		return nil, errors.New("a stack needs a manifest")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Stack{
		options: o, Manifest: o.Manifest,
		Apps: map[workspace.Kind]*workspace.Client{}, Processes: map[workspace.Kind]*workspace.Process{},
		stopping: make(chan struct{}), failed: make(chan error, 1),
	}
	s.stop = sync.OnceValue(s.end)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if o.DataDir == "" || o.Ephemeral {
		if s.temp, err = os.MkdirTemp("", "mcpx-"); err != nil {
			return nil, fmt.Errorf("directory for the data of the stack: %w", err)
		}
	}

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.startTemporal(groupCtx) })
	if o.Apps {
		group.Go(func() error { return s.startApps(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if o.Worker {
		s.Worker, err = worker.Start(ctx, worker.Options{
			Client: s.Client.Temporal(), Namespace: s.Namespace, Manifest: s.Manifest, Logger: o.Logger, StopTimeout: workerGrace,
		})
		if err != nil {
			return nil, fmt.Errorf("start the worker: %w", err)
		}
	}
	s.watch()
	return s, nil
}

// dataDir is where the applications keep their data.
func (s *Stack) dataDir() string {
	if s.temp != "" {
		return filepath.Join(s.temp, "apps")
	}
	return filepath.Join(s.options.DataDir, "apps")
}

func (s *Stack) startTemporal(ctx context.Context) (err error) {
	o := s.options
	if o.External != nil {
		external := *o.External
		external.Logger, external.Prepare = o.Logger, s.prepare
		if s.Client, err = sdk.Dial(ctx, external); err != nil {
			return err
		}
		s.Address, s.Namespace = external.Address, s.Client.Namespace()
		return nil
	}
	s.Namespace = o.Namespace
	if s.Namespace == "" {
		s.Namespace = contract.Namespace
	}
	dir := o.DataDir
	if dir == "" {
		dir = filepath.Join(s.temp, "temporal")
	}
	s.Server, err = devserver.Start(ctx, devserver.Options{
		DataDir: dir, Ephemeral: o.Ephemeral, UI: o.UI, Port: o.Port, UIPort: o.UIPort,
		Namespace: s.Namespace, Retention: o.Manifest.LongestTTL(), SearchAttributes: visibility.Attributes,
	})
	if err != nil {
		return err
	}
	s.Address, s.UIURL = s.Server.Address(), s.Server.UIURL()
	// Not by way of the environment: its credentials are for another server.
	s.connection, err = client.DialContext(ctx, client.Options{
		HostPort: s.Address, Namespace: s.Namespace, Logger: log.NewStructuredLogger(o.Logger),
	})
	if err != nil {
		return fmt.Errorf("connect to the Temporal development server at %s: %w", s.Address, err)
	}
	s.Client = sdk.New(s.connection, s.Namespace)
	return nil
}

// prepare makes an external namespace ready.
func (s *Stack) prepare(ctx context.Context, c client.Client, namespace string) error {
	return Prepare(ctx, c, namespace, s.options.Manifest, s.options.Logger)
}

// Prepare makes a namespace ready for the manifest's transactions: it is there, keeps closed ones for long enough, and
// has MCPx's search attributes. On a server that does not let this client do so, it is left as it is, with a warning:
// a worker checks it again, and MCPx works without the attributes.
func Prepare(ctx context.Context, s devserver.Services, namespace string, m *manifest.Manifest, logger *slog.Logger) error {
	for _, ensure := range []func() error{
		func() error { return devserver.EnsureNamespace(ctx, s, namespace, m.LongestTTL()) },
		func() error { return devserver.EnsureSearchAttributes(ctx, s, namespace, visibility.Attributes) },
	} {
		err := ensure()
		if errors.Is(err, devserver.ErrNotPermitted) {
			logger.Warn("the namespace cannot be prepared by this client", "namespace", namespace, "error", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Failed receives the first failure of a part that nobody stopped: Temporal, an application, or the worker.
func (s *Stack) Failed() <-chan error { return s.failed }

// watch reports a part that ends by itself. An application is watched until its first end: whoever kills it on purpose
// starts it again himself.
func (s *Stack) watch() {
	if s.Server != nil {
		s.watchPart(s.Server.Done(), s.Server.Err)
	}
	for kind, process := range s.Processes {
		s.watchPart(process.Done(), func() error {
			return fmt.Errorf("the %s application (pid %d) ended by itself", kind, process.PID())
		})
	}
	if s.Worker != nil {
		s.watchers.Go(func() {
			select {
			case err := <-s.Worker.Failed():
				s.fail(fmt.Errorf("the worker cannot go on: %w", err))
			case <-s.stopping:
			}
		})
	}
}

func (s *Stack) watchPart(done <-chan struct{}, why func() error) {
	s.watchers.Go(func() {
		select {
		case <-done:
			s.fail(why())
		case <-s.stopping:
		}
	})
}

func (s *Stack) fail(err error) {
	if err == nil {
		return // it was stopped on purpose
	}
	select {
	case <-s.stopping:
	case s.failed <- err:
	default: // one is enough
	}
}

// Stop stops everything that was started, in order, and returns when it is gone. It may be called more than once.
func (s *Stack) Stop() error { return s.stop() }

func (s *Stack) end() error {
	close(s.stopping)
	s.watchers.Wait()
	var errs []error
	if s.Worker != nil {
		s.Worker.Stop()
	}
	if s.Client != nil {
		s.Client.Close()
	}
	if s.connection != nil {
		s.connection.Close()
	}
	errs = append(errs, s.stopApps())
	if s.Server != nil {
		errs = append(errs, s.Server.Stop(context.Background()))
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	return errors.Join(errs...)
}

// Package devserver runs an embedded Temporal: the temporal program's development server as a child process, on
// loopback, tuned for MCPx, with its namespace and search attributes in place.
//
// A server keeps everything in one SQLite file in its data directory, so a restart, an orderly one or a crash, loses
// nothing. A data directory serves one server at a time, and no server outlives the process that started it (see
// package proc for what that means on systems other than Linux).
//
// EnsureNamespace and EnsureSearchAttributes work on any Temporal server, not only on the embedded one.
package devserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mcpx-go/mcpx/internal/proc"
)

const (
	// DefaultNamespace exists on every development server.
	DefaultNamespace = "default"

	// StartTimeout limits Start where its context has no deadline. A first start on a slow machine takes a few
	// seconds, most of it to lay out the database.
	StartTimeout = 60 * time.Second

	// StopGrace is how long Stop waits for an orderly end before it kills.
	StopGrace = 10 * time.Second

	startAttempts = 5
	loopback      = "127.0.0.1"
)

// ErrPortInUse says that a port which was asked for by number is taken.
var ErrPortInUse = errors.New("port in use")

// ErrStartFailed says that the server process ended, or did not become ready, while it was being started.
var ErrStartFailed = errors.New("the Temporal development server did not start")

// ErrEnded says that a running server ended without having been stopped.
var ErrEnded = errors.New("the Temporal development server ended by itself")

// tuning is the dynamic configuration of every embedded server.
//
// The stock server takes tasks off its queue 20 times a second, which stretches each step to 50 ms; 200 removes that
// wait. One partition per task queue is enough on one machine and saves a hop. The search attributes of a running
// server become visible at once.
var tuning = []string{
	"history.transferProcessorMaxPollRPS=200",
	"matching.numTaskqueueReadPartitions=1",
	"matching.numTaskqueueWritePartitions=1",
	"frontend.enableServerVersionCheck=false",
	"system.forceSearchAttributesCacheRefreshOnRead=true",
}

// Options say which server to start. The zero value of each optional field has a meaning of its own.
type Options struct {
	// Binary is the temporal program. Empty: what Find finds.
	Binary string

	// DataDir is the directory for the database, the log (temporal.log), the lock and the address file
	// (temporal.json). It is created where missing. Required unless Ephemeral.
	DataDir string

	// Ephemeral keeps the database in memory. With a DataDir, the other files are still written there.
	Ephemeral bool

	// Port is the gRPC port on 127.0.0.1, UIPort the web UI's. Zero: a free one.
	Port, UIPort int

	// UI also starts Temporal's web UI.
	UI bool

	// Namespace is made ready for use, with at least this Retention of closed workflows. Empty: DefaultNamespace.
	// A zero Retention leaves an existing namespace's as it is, and makes a new one with DefaultRetention.
	Namespace string
	Retention time.Duration

	// SearchAttributes are registered in the namespace, by name.
	SearchAttributes map[string]enumspb.IndexedValueType

	// LogWriter, if set, gets a copy of what the server prints. It is never called concurrently.
	LogWriter io.Writer

	// LogLevel is debug, info, warn, error or never. Empty: warn.
	LogLevel string
}

// Server is a running development server. Its methods may be called from any goroutine.
type Server struct {
	process  *proc.Process
	info     Info
	log      *serverLog
	stopping atomic.Bool
	done     chan struct{}
}

// Start starts a server and returns when its namespace can be used. The context limits the start alone: the server
// then runs until Stop, Kill, or the end of this process.
//
// Errors to branch on: ErrNotFound (no temporal program), ErrInUse (another server has the data directory),
// ErrPortInUse, and ErrStartFailed, which carries the last lines of the server's log.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, StartTimeout)
		defer cancel()
	}

	var lock *dirLock
	if o.DataDir != "" {
		if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
			return nil, fmt.Errorf("data directory of the Temporal development server: %w", err)
		}
		var err error
		if lock, err = lockDir(ctx, o.DataDir); err != nil {
			return nil, err
		}
	}

	for attempt := 1; ; attempt++ {
		s, err := start(ctx, o, lock)
		if err == nil {
			return s, nil
		}
		if attempt < startAttempts && errors.Is(err, errPortTaken) && ctx.Err() == nil {
			continue
		}
		lock.release()
		return nil, err
	}
}

// complete checks the options and fills in what was left open.
func (o *Options) complete() (err error) {
	if o.DataDir == "" && !o.Ephemeral {
		return errors.New("the Temporal development server needs a data directory, unless it is ephemeral")
	}
	if o.DataDir != "" {
		if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
			return fmt.Errorf("data directory of the Temporal development server: %w", err)
		}
	}
	if o.Binary == "" {
		if o.Binary, err = Find(); err != nil {
			return err
		}
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.LogLevel == "" {
		o.LogLevel = "warn"
	}
	return nil
}

// start is one attempt: one choice of ports, one process. On success the lock belongs to the server.
func start(ctx context.Context, o Options, lock *dirLock) (_ *Server, err error) {
	ports, err := choosePorts(o)
	if err != nil {
		return nil, err
	}
	log, err := newServerLog(o, ports.grpc)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.Binary, o.arguments(ports)...)
	cmd.Env = withoutTemporalSettings(os.Environ())
	cmd.Stdout, cmd.Stderr = log.stdout(), log.stderr()
	lock.inherit(cmd)

	fresh := o.database() != "" && !exists(o.database())
	process, err := proc.Start(cmd)
	if err != nil {
		log.close()
		return nil, fmt.Errorf("%w: %w", ErrStartFailed, err)
	}
	s := &Server{
		process: process,
		log:     log,
		done:    make(chan struct{}),
		info:    Info{Address: address(ports.grpc), PID: process.Pid(), Owner: os.Getpid()},
	}
	if o.UI {
		s.info.UI = "http://" + address(ports.ui)
	}
	defer func() {
		if err != nil {
			_ = process.Kill()
			log.close()
			if fresh {
				removeDatabase(o.database())
			}
		}
	}()

	if err := s.ready(ctx, o); err != nil {
		return nil, err
	}
	if o.DataDir != "" {
		if err := s.info.write(o.DataDir); err != nil {
			return nil, err
		}
	}
	go func() {
		defer close(s.done)
		<-process.Done()
		if o.DataDir != "" {
			removeInfo(o.DataDir)
		}
		log.close()
		lock.release()
	}()
	return s, nil
}

// arguments is the command line of the server.
func (o Options) arguments(p ports) []string {
	args := []string{
		"server", "start-dev",
		"--ip", loopback,
		"--port", strconv.Itoa(p.grpc),
		"--http-port", strconv.Itoa(p.http),
		"--metrics-port", strconv.Itoa(p.metrics),
		"--log-level", o.LogLevel,
	}
	if o.UI {
		args = append(args, "--ui-ip", loopback, "--ui-port", strconv.Itoa(p.ui))
	} else {
		args = append(args, "--headless")
	}
	if db := o.database(); db != "" {
		args = append(args, "--db-filename", db)
	}
	for _, value := range tuning {
		args = append(args, "--dynamic-config-value", value)
	}
	return args
}

// database is the database's file, empty where the database is in memory.
func (o Options) database() string {
	if o.Ephemeral {
		return ""
	}
	return filepath.Join(o.DataDir, "temporal.db")
}

// removeDatabase removes the files of a database whose first start failed: a half-made one would stop every later
// start.
func removeDatabase(file string) {
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		_ = os.Remove(file + suffix)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// withoutTemporalSettings drops the variables that are meant for clients: the server must not be steered by the
// address or profile that its user works with.
func withoutTemporalSettings(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, variable := range env {
		if !strings.HasPrefix(variable, "TEMPORAL_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// Address is the server's gRPC address, host:port.
func (s *Server) Address() string { return s.info.Address }

// UIURL is the address of the web UI, empty where it was not asked for.
func (s *Server) UIURL() string { return s.info.UI }

// Pid is the process id of the server.
func (s *Server) Pid() int { return s.info.PID }

// Done is closed when the server has ended, by whatever cause, and its data directory is free again.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why a server ended that nobody stopped: ErrEnded with the exit status and the last lines of its log. It is
// nil while the server runs and after Stop or Kill.
func (s *Server) Err() error {
	select {
	case <-s.done:
	default:
		return nil
	}
	if s.stopping.Load() {
		return nil
	}
	return fmt.Errorf("%w (%s)%s", ErrEnded, s.exitStatus(), s.log.tail())
}

// Stop asks the server to end, and kills it when it has not ended after StopGrace or when ctx ends. It returns when
// the process is gone and the data directory is free. A server that has ended already is no error.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	if err := s.process.Signal(syscall.SIGTERM); err == nil {
		timer := time.NewTimer(StopGrace)
		defer timer.Stop()
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	return s.kill()
}

// Kill ends the server at once, as a crash would (SIGKILL), and returns when the process is gone and the data
// directory is free.
func (s *Server) Kill() error {
	s.stopping.Store(true)
	return s.kill()
}

func (s *Server) kill() error {
	if err := s.process.Kill(); err != nil {
		return fmt.Errorf("stop the Temporal development server: %w", err)
	}
	<-s.done
	return nil
}

func (s *Server) exitStatus() string {
	if err := s.process.ExitError(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"sync"

	"github.com/mcpx-go/mcpx/internal/proc"
)

// stderrTail is how much of a process's standard error is kept, in bytes.
const stderrTail = 16 << 10

// ErrNotReady says that a process ended, or was given up, before it announced
// that it accepts connections.
var ErrNotReady = errors.New("the application did not become ready")

// Process is an application that runs as a child process, in a process group
// of its own. It dies with the process that started it.
type Process struct {
	kind    Kind
	binary  []string
	dataDir string
	stderr  io.Writer

	mu   sync.Mutex // serialises Kill, Stop and Restart
	addr string
	run  *child
}

// StartOption changes how [Start] runs a process.
type StartOption func(*Process)

// WithStderr sends the process's log to w instead of discarding it.
func WithStderr(w io.Writer) StartOption {
	return func(p *Process) { p.stderr = w }
}

// Start runs one application as a child process and waits until it accepts
// connections.
//
// binary is the executable with the arguments that lead to [Command]; an
// executable that mounts it can name itself:
//
//	self, err := os.Executable()
//	Start(ctx, workspace.Routing, []string{self, "example", "workspace"}, dir, "127.0.0.1:0")
//
// An empty addr means the application's default port on loopback; port 0 picks
// a free one. The context bounds the wait only: the process runs until Kill,
// Stop, or the end of its parent. If it does not become ready the error is
// [ErrNotReady], with the end of its log, and no process remains.
func Start(ctx context.Context, kind Kind, binary []string, dataDir, addr string, options ...StartOption) (*Process, error) {
	app, err := AppOf(kind)
	if err != nil {
		return nil, err
	}
	if len(binary) == 0 {
		return nil, errors.New("no executable given for the workspace applications")
	}
	if addr == "" {
		addr = app.Addr()
	}
	p := &Process{kind: kind, binary: binary, dataDir: dataDir, addr: addr, stderr: io.Discard}
	for _, option := range options {
		option(p)
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Kind returns which application it is.
func (p *Process) Kind() Kind { return p.kind }

// URL returns the application's MCP endpoint. It stays the same over restarts.
func (p *Process) URL() string { return p.current().ready.URL }

// PID returns the process ID, of the newest run.
func (p *Process) PID() int { return p.current().ready.PID }

// Client returns a client for the application's fault switch and counters.
func (p *Process) Client() *Client { return NewClient(p.URL()) }

// Done returns a channel that is closed when the newest run has ended.
func (p *Process) Done() <-chan struct{} { return p.current().process.Done() }

func (p *Process) current() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Kill ends the process group with SIGKILL, as a power cut would, and waits
// for its end. Killing an ended process does nothing.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.kill()
}

// Stop asks the process to end and waits for it. When the context ends first,
// the process is killed and the error says so.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.stop(ctx)
}

// Restart starts the application again on the same address and data. A process
// that still runs is killed first.
func (p *Process) Restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.kill()
	return p.start(ctx)
}

// start begins a new run. A run that fails to become ready leaves the last one,
// which has ended, in place.
func (p *Process) start(ctx context.Context) error {
	args := append(append([]string{}, p.binary[1:]...),
		string(p.kind), "--addr", p.addr, "--data", p.dataDir, "--exit-with-parent")
	run, err := startChild(ctx, p.binary[0], args, p.stderr)
	if err != nil {
		return fmt.Errorf("start the %s application: %w", p.kind, err)
	}
	at, err := url.Parse(run.ready.URL)
	if err != nil || at.Host == "" {
		run.kill()
		return fmt.Errorf("start the %s application: %w: it announced the URL %q", p.kind, ErrNotReady, run.ready.URL)
	}
	p.addr, p.run = at.Host, run
	return nil
}

// child is one run of an executable.
type child struct {
	process *proc.Process
	stdin   io.Closer
	log     *tail
	ready   readyLine
}

func startChild(ctx context.Context, path string, args []string, stderr io.Writer) (*child, error) {
	c := &child{log: &tail{mirror: stderr}}
	announced := &firstLine{line: make(chan []byte, 1)}
	cmd := exec.Command(path, args...)
	cmd.Stdout = announced
	cmd.Stderr = c.log
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.process, err = proc.Start(cmd); err != nil {
		return nil, err
	}

	select {
	case line := <-announced.line:
		if err := json.Unmarshal(line, &c.ready); err != nil {
			c.kill()
			return nil, fmt.Errorf("%w: it announced %q", ErrNotReady, line)
		}
		return c, nil
	case <-c.process.Done():
		return nil, fmt.Errorf("%w: it ended (%v) and logged: %s", ErrNotReady, c.process.ExitError(), c.log)
	case <-ctx.Done():
		c.kill()
		return nil, fmt.Errorf("%w: %w; it logged: %s", ErrNotReady, context.Cause(ctx), c.log)
	}
}

func (c *child) kill() {
	_ = c.process.Kill() // a refusal means that it is ending by itself
	<-c.process.Done()
}

func (c *child) stop(ctx context.Context) error {
	_ = c.stdin.Close() // a run that has ended has closed it already
	select {
	case <-c.process.Done():
		return nil
	case <-ctx.Done():
		c.kill()
		return fmt.Errorf("process %d did not stop and was killed: %w; it logged: %s", c.ready.PID, context.Cause(ctx), c.log)
	}
}

// firstLine passes on the first line written to it and discards the rest.
type firstLine struct {
	line    chan []byte
	pending []byte
	found   bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if f.found {
		return len(p), nil
	}
	f.pending = append(f.pending, p...)
	if i := bytes.IndexByte(f.pending, '\n'); i >= 0 {
		f.found = true
		f.line <- f.pending[:i]
		f.pending = nil
	}
	return len(p), nil
}

// tail keeps the end of what is written to it, and copies everything to the
// mirror. A mirror that fails does not disturb the writer.
type tail struct {
	mirror io.Writer

	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if over := len(t.end) - stderrTail; over > 0 {
		t.end = append([]byte{}, t.end[over:]...)
	}
	_, _ = t.mirror.Write(p)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.end))
}

// Package proc starts child processes that cannot outlive the process that started them.
//
// A child gets a process group of its own, so that a Ctrl-C in the terminal reaches only the parent, which then stops
// its children in order, and so that whatever the child starts itself is ended together with it:
//
//   - when the child ends, for whatever reason, everything left in its group is killed;
//   - when the parent stops the child, the whole group gets the signal;
//   - when the parent dies without a chance to stop anything (SIGKILL, a crash), Linux kills the child. What the child
//     had started is not covered by that last rule: it sees its inherited pipes close.
//
// On other Unix systems the last rule does not exist, and on systems without process groups only the child itself is
// ended.
package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// DefaultWaitDelay is how long after the child's end its output may stay open, held by processes that it started,
// before the pipes are closed anyway. It applies where the command's own WaitDelay is zero.
const DefaultWaitDelay = 2 * time.Second

// Process is a started child process. Its methods may be called from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	pid  int
	done chan struct{}

	mu    sync.Mutex // guards ended, and keeps the process id ours while a signal is sent
	ended bool

	err error // set before done is closed
}

// Start starts cmd as the leader of a new process group and returns once it runs.
//
// The command's output is collected by a goroutine of Start's, as [exec.Cmd.Wait] does it. So read it through a writer
// in cmd.Stdout, or through an [os.Pipe] whose write end is in cmd.Stdout and among childEnds, but never through
// [exec.Cmd.StdoutPipe]: that one loses what is still unread when the child ends. [exec.Cmd.StdinPipe] is fine.
//
// childEnds are closed in this process as soon as the child has its own copies, and also when the start fails.
func Start(cmd *exec.Cmd, childEnds ...io.Closer) (*Process, error) {
	isolate(cmd)
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = DefaultWaitDelay
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started, childEnds)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run starts the command and stays with it until it has ended. Linux ties the death signal to the thread that forked,
// not to the process, so that thread is kept for as long as the child lives.
func (p *Process) run(started chan<- error, childEnds []io.Closer) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	for _, c := range childEnds {
		_ = c.Close()
	}
	if err != nil {
		started <- err
		return
	}
	p.pid = p.cmd.Process.Pid
	started <- nil

	p.err = awaitEnd(p.cmd, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = signalGroup(p.cmd.Process, syscall.SIGKILL)
		p.ended = true
	})
	close(p.done)
}

// Pid is the child's process id and, where process groups exist, its group's.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the child has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the child's end and returns its ExitError.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// ExitError says how the child ended: nil while it runs or when it exited with status 0, an [exec.ExitError] when it
// exited with another status or by a signal, or the error of collecting its output.
func (p *Process) ExitError() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Signal sends sig to the child's group. It returns [os.ErrProcessDone] when the child has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return os.ErrProcessDone
	}
	return signalGroup(p.cmd.Process, sig)
}

// Stop asks the child's group to terminate (SIGTERM), waits up to grace for the child to end, and kills the group when
// it has not. A grace of zero or less kills at once. Stop returns when the child is gone; a child that had already
// ended is no error.
func (p *Process) Stop(grace time.Duration) error {
	if grace > 0 {
		// A system that cannot ask (no SIGTERM) is left with the kill below.
		if err := p.Signal(syscall.SIGTERM); err == nil {
			timer := time.NewTimer(grace)
			defer timer.Stop()
			select {
			case <-p.done:
				return nil
			case <-timer.C:
			}
		}
	}
	return p.Kill()
}

// Kill kills the child's group (SIGKILL) and returns when the child is gone. A child that had already ended is no
// error.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	<-p.done
	return nil
}

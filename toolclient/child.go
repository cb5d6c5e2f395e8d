package toolclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/proc"
)

// child is the process of a stdio server, in its own process group. It dies with this process.
type child struct {
	process *proc.Process
	stdin   *os.File
	raw     syscall.RawConn // of stdin
	stdout  *os.File
	stderr  *os.File

	scrub      *strings.Replacer
	lastStderr atomic.Pointer[string]
	stderrDone chan struct{}
}

// startChild runs the server's command.
func startChild(server contract.Server, secrets *secretResolver) (*child, error) {
	spec := server.Stdio
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		value, err := secrets.resolve(spec.Env[name])
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+value)
	}
	var files []io.Closer
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	c := &child{stdin: inW, stdout: outR, stderr: errR, scrub: secrets.scrubber(), stderrDone: make(chan struct{})}
	err := errors.Join(err1, err2, err3)
	if err == nil {
		c.raw, err = inW.SyscallConn()
	}
	if err == nil {
		cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
		cmd.Dir, cmd.Env = spec.Dir, env
		cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
		c.process, err = proc.Start(cmd, inR, outW, errW)
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close() // those of the child may be closed already
		}
		return nil, fmt.Errorf("could not be started: %w", err)
	}
	return c, nil
}

// logStderr passes the child's error output on, line by line, until it ends.
func (c *child) logStderr(log *slog.Logger, copyTo io.Writer) {
	defer close(c.stderrDone)
	r := bufio.NewReaderSize(c.stderr, 4<<10)
	for {
		part, err := r.ReadSlice('\n') // a line that does not fit is shown in pieces
		if text := strings.TrimRight(string(part), "\r\n"); text != "" {
			text = c.scrub.Replace(strings.ToValidUTF8(text, "\uFFFD"))
			c.lastStderr.Store(&text)
			log.Info("server stderr", "line", text)
			if copyTo != nil {
				_, _ = io.WriteString(copyTo, text+"\n")
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// drainTime is how long the output of an ended child is still read: something that left its process group may hold it
// open for ever.
const drainTime = 500 * time.Millisecond

// drained waits for what the ended child had written, then closes our ends. readerDone is closed when its output has
// been read.
func (c *child) drained(readerDone <-chan struct{}) {
	timer := time.AfterFunc(drainTime, func() {
		_ = c.stdout.Close()
		_ = c.stderr.Close()
	})
	defer timer.Stop()
	<-readerDone
	<-c.stderrDone
	_ = c.stdout.Close()
	_ = c.stderr.Close()
	_ = c.stdin.Close()
}

// exit says how the child ended, with the last thing it had to say.
func (c *child) exit() string {
	how := "exit status 0"
	if err := c.process.ExitError(); err != nil {
		how = err.Error()
	}
	if last := c.lastStderr.Load(); last != nil {
		how += fmt.Sprintf(", last stderr line %q", clip(*last, 200))
	}
	return how
}

// stop ends the child in order: it sees its input end, then gets SIGTERM, then SIGKILL.
func (c *child) stop(grace time.Duration) {
	_ = c.stdin.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.process.Done():
	case <-timer.C:
		_ = c.process.Stop(grace)
	}
}

// kill ends the child's group at once. It does not wait.
func (c *child) kill() { _ = c.process.Signal(syscall.SIGKILL) }

// clip shortens a text for a message.
func clip(text string, max int) string {
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max] + "…"
}

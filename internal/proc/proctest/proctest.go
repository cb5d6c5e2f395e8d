// Package proctest helps tests that start processes.
package proctest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Output collects what is written to it, and can be read at the same time. Its zero value is empty and ready for use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends to what was written before. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Gone tells whether no process of that id runs. On Linux a zombie counts as gone: it is its parent's to collect.
func Gone(pid int) bool {
	if runtime.GOOS == "linux" {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.HasPrefix(state, "Z")
	}
	process, err := os.FindProcess(pid)
	return err != nil || errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// RequireGone waits until each of the processes is [Gone], a minute for each, and fails the test when one stays.
func RequireGone(t testing.TB, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return Gone(pid) }, time.Minute, 10*time.Millisecond, "process %d is still there", pid)
	}
}

//go:build unix

package toolclient

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
)

const (
	wait = 20 * time.Second
	tick = 5 * time.Millisecond
)

// The test binary plays other processes too: the argument after roleFlag says which.
const roleFlag = "-toolclient-test-role"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleFlag {
		switch os.Args[2] {
		case "server":
			serveScript(os.Args[3:])
		case "sleeper":
			select {}
		case "caller":
			callOnce(os.Args[3:])
		}
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes that the tests start
	goleak.VerifyTestMain(m)
}

// newPool makes a pool for a test, and what it logs.
func newPool(t *testing.T, o Options, servers ...contract.Server) (*Pool, *proctest.Output) {
	t.Helper()
	logged := &proctest.Output{}
	o.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := NewPool(o)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		if t.Failed() {
			t.Log(logged.String())
		}
	})
	for _, s := range servers {
		require.NoError(t, p.Add(s))
	}
	return p, logged
}

// mutation is a call that may be written for the next d.
func mutation(d time.Duration) Call {
	return Call{ID: "tx/step/1", Tool: "create", Args: json.RawMessage(`{"name":"x"}`), WriteDeadline: time.Now().Add(d)}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// open makes sure that the server has a session, so that what follows is about the call alone.
func open(t *testing.T, p *Pool, ref contract.ServerRef) {
	t.Helper()
	_, err := p.Tools(within(t, wait), ref)
	require.NoError(t, err)
}

func stderrTo(w io.Writer) func(string) io.Writer { return func(string) io.Writer { return w } }

// awaitEnd waits until the pool has seen its session end.
func awaitEnd(t *testing.T, p *Pool, ref contract.ServerRef) {
	t.Helper()
	o, err := p.find(ref)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.current == nil || o.current.gone()
	}, wait, tick)
}

// freezer is a clock for a pool that is frozen for 20 seconds right after its next look at the time, once armed.
type freezer struct{ armed, looks atomic.Int64 }

func (f *freezer) now() time.Time {
	if f.armed.Load() != 0 && f.looks.Add(1) > 1 {
		return wallClock().Add(20 * time.Second)
	}
	return wallClock()
}

func (f *freezer) arm(on int64) {
	f.looks.Store(0)
	f.armed.Store(on)
}

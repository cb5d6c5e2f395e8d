package scenario_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/proc"
	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/worker"
)

// The test binary is also the applications and the workers: each runs in a process of its own, so that it can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "workspace":
			os.Exit(workspace.Main(os.Args[2:]))
		case "worker":
			os.Exit(work(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

// work is a worker's whole process.
func work(address, file string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := func() error {
		m, err := manifest.Load(file)
		if err != nil {
			return err
		}
		logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c, err := client.DialContext(ctx, client.Options{
			HostPort: address, Namespace: contract.Namespace, Logger: sdklog.NewStructuredLogger(logger),
		})
		if err != nil {
			return err
		}
		defer c.Close()
		return worker.Run(ctx, worker.Options{Client: c, Namespace: contract.Namespace, Manifest: m, Logger: logger})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// world is a Temporal server with the four applications, and as many workers as a test wants.
type world struct {
	*stack.Stack
	t    *testing.T
	file string
}

// patience is how long a test waits for something that must come.
const patience = 90 * time.Second

func start(t *testing.T, text string) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mcpx.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	m, err := manifest.Load(file)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	s, err := stack.Start(t.Context(), stack.Options{
		Manifest: m, Ephemeral: true, Apps: true, FreePorts: true, Binary: []string{self, "workspace"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	require.NoError(t, os.WriteFile(file, moved(t, text, s), 0o600))
	return &world{Stack: s, t: t, file: file}
}

// worker starts a worker in a process of its own.
func (w *world) worker() *proc.Process {
	w.t.Helper()
	self, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.Command(self, "worker", w.Address, w.file)
	cmd.Stderr = os.Stderr
	p, err := proc.Start(cmd)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = p.Kill(); <-p.Done() })
	return p
}

func (w *world) fault(kind workspace.Kind, tool string, fault workspace.FaultKind, calls int) {
	w.t.Helper()
	require.NoError(w.t, w.Apps[kind].SetFault(w.t.Context(), workspace.Fault{Tool: tool, Fault: fault, Calls: calls}))
}

func (w *world) begin(plan, input string) string {
	w.t.Helper()
	started, err := w.Client.Start(w.t.Context(), sdk.StartRequest{
		Plan: plan, Input: json.RawMessage(input), Requester: "test", Manifest: w.Manifest,
	})
	require.NoError(w.t, err)
	return started.ID
}

// until waits for a state of the transaction, in vain if it has ended in another one.
func (w *world) until(id string, state contract.TxState) contract.Snapshot {
	w.t.Helper()
	s := w.when(id, string(state), func(s contract.Snapshot) bool { return s.State == state || s.State.Closed() })
	require.Equal(w.t, state, s.State, s.Reason)
	return s
}

// when waits until something holds of a transaction.
func (w *world) when(id, what string, holds func(contract.Snapshot) bool) contract.Snapshot {
	w.t.Helper()
	var last contract.Snapshot
	var err error
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last, err = w.Client.Snapshot(w.t.Context(), id)
		if err == nil && holds(last) {
			return last
		}
		if time.Now().After(deadline) {
			shown, _ := json.MarshalIndent(last, "", "  ")
			require.FailNow(w.t, fmt.Sprintf("%s never came to: %s", id, what), "error %v, last seen %s", err, shown)
		}
		<-tick.C
	}
}

// arrived waits until an application has been called.
func (w *world) arrived(kind workspace.Kind, tool string, times int64) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.calls(kind)[tool] >= times }, patience, 20*time.Millisecond,
		"%s was never called", tool)
}

func (w *world) calls(kind workspace.Kind) map[string]int64 {
	calls, err := w.Apps[kind].Calls(w.t.Context())
	if err != nil {
		return nil // an application that is down has no counters
	}
	return calls
}

// exists counts the resources of every application.
func (w *world) exists() map[workspace.Kind]int {
	w.t.Helper()
	found := map[workspace.Kind]int{}
	for kind, app := range w.Apps {
		resources, err := app.Resources(w.t.Context())
		require.NoError(w.t, err)
		found[kind] = len(resources)
	}
	return found
}

var (
	everything = map[workspace.Kind]int{workspace.Database: 1, workspace.Compute: 1, workspace.Routing: 1, workspace.Frontend: 1}
	none       = map[workspace.Kind]int{workspace.Database: 0, workspace.Compute: 0, workspace.Routing: 0, workspace.Frontend: 0}
)

func (w *world) approve(id string) {
	w.t.Helper()
	s := w.until(id, contract.TxAwaitingCompensationApproval)
	_, err := w.Client.Approve(w.t.Context(), id, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	require.NoError(w.t, err)
}

func stateOf(t *testing.T, s contract.Snapshot, id string) contract.StepState {
	t.Helper()
	step, ok := s.Step(id)
	require.True(t, ok)
	return step.State
}

package starter_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/manifest"
)

// quick makes the examples' contracts settle sooner than people's applications do.
var quick = strings.NewReplacer("settle: 2s", "settle: 200ms", "timeout: 5s", "timeout: 2s")

// shared is a stack for the tests that only need one, and the file of its manifest.
var shared struct {
	once  sync.Once
	stack *stack.Stack
	file  string
	err   error
}

// system is mcpx on a running stack.
type system struct {
	*stack.Stack
	file string
}

// running is the shared stack, without faults.
func running(t *testing.T) system {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	mcpx := built(t)
	text := quick.Replace(string(examplesText(t)))
	shared.once.Do(func() {
		var m *manifest.Manifest
		if m, shared.err = manifest.Parse("mcpx.yaml", []byte(text)); shared.err != nil {
			return
		}
		shared.stack, shared.err = stack.Start(context.Background(), stack.Options{
			Manifest: m, Apps: true, FreePorts: true, Worker: true, Binary: []string{mcpx, "example", "workspace"},
		})
		if shared.err != nil {
			return
		}
		shared.file = filepath.Join(filepath.Dir(binary.path), "mcpx.yaml")
		shared.err = os.WriteFile(shared.file, []byte(moved(text, shared.stack)), 0o600)
	})
	require.NoError(t, shared.err, "a Temporal server is needed: `make temporal` builds one")
	s := system{shared.stack, shared.file}
	t.Cleanup(func() {
		for _, app := range s.Apps {
			require.NoError(t, app.ClearFaults(context.Background()))
		}
	})
	return s
}

// moved is a manifest's text with the applications where they are in a stack.
func moved(text string, s *stack.Stack) string {
	for _, app := range workspace.Apps() {
		if process, ok := s.Processes[app.Kind]; ok {
			text = strings.ReplaceAll(text, "http://"+app.Addr()+"/mcp", process.URL())
		}
	}
	return text
}

// as runs mcpx against the stack.
func (s system) as(t *testing.T, who typed, args ...string) ran {
	t.Helper()
	return who.mcpx(t, append([]string{"--address", s.Address, "--manifest", s.file}, args...)...)
}

func (s system) mcpx(t *testing.T, args ...string) ran {
	t.Helper()
	return s.as(t, typed{}, args...)
}

func (s system) fault(t *testing.T, kind workspace.Kind, tool string, fault workspace.FaultKind, calls int, ms int64) {
	t.Helper()
	require.NoError(t, s.Apps[kind].SetFault(t.Context(), workspace.Fault{Tool: tool, Fault: fault, Calls: calls, MS: ms}))
}

// started starts provision-workspace for a workspace of that name, and returns the ID.
func (s system) started(t *testing.T, name string, args ...string) string {
	t.Helper()
	var started struct{ ID string }
	s.mcpx(t, append([]string{"start", "provision-workspace", "-i", "workspace=" + name, "--json"}, args...)...).requireCode(t, 0).decode(t, &started)
	require.NotEmpty(t, started.ID)
	return started.ID
}

// waiting starts a transaction whose frontend is refused, and returns the ID when a human is asked about the rollback.
func (s system) waiting(t *testing.T, name string) string {
	t.Helper()
	s.fault(t, workspace.Frontend, "deploy", workspace.Reject, 1, 0)
	var result struct {
		ID    string
		State contract.TxState
	}
	s.mcpx(t, "start", "provision-workspace", "-i", "workspace="+name, "--wait", "--json").requireCode(t, 3).decode(t, &result)
	require.Equal(t, contract.TxAwaitingCompensationApproval, result.State)
	return result.ID
}

// state looks at a transaction.
func (s system) state(t *testing.T, id string) contract.Snapshot {
	t.Helper()
	var tx contract.Snapshot
	r := s.mcpx(t, "status", id, "--json").requireCode(t, 0)
	require.NoError(t, json.Unmarshal([]byte(r.out), &tx), r.out)
	return tx
}

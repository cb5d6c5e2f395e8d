package stack_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
)

const (
	wait = 30 * time.Second
	poll = 20 * time.Millisecond
)

// The test binary plays the applications too, as mcpx does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "example" {
		os.Exit(workspace.Main(os.Args[3:]))
	}
	os.Exit(m.Run())
}

func examples(t *testing.T) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Load(filepath.Join("..", "..", "mcpx.yaml"))
	require.NoError(t, err)
	return m
}

func start(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	o.Manifest, o.FreePorts = examples(t), true
	s, err := stack.Start(t.Context(), o)
	require.NoError(t, err, "a Temporal server is needed: `make temporal` builds one")
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func TestAStackCarriesOutTransactionsAndLeavesNothing(t *testing.T) {
	s := start(t, stack.Options{Apps: true, Worker: true})
	require.Equal(t, []workspace.Kind{workspace.Database, workspace.Compute, workspace.Routing, workspace.Frontend}, s.Kinds())
	require.Contains(t, s.Worker.Queues(), contract.TaskQueue)

	started, err := s.Client.Start(t.Context(), sdk.StartRequest{
		Plan: "provision-workspace", Input: json.RawMessage(`{"workspace": "acme"}`), Manifest: s.Manifest,
	})
	require.NoError(t, err)
	tx, err := s.Client.Wait(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxCommitted, tx.State)
	for _, kind := range s.Kinds() {
		resources, err := s.Apps[kind].Resources(t.Context())
		require.NoError(t, err)
		require.Len(t, resources, 1, kind)
	}

	pids := []int{s.Server.Pid()}
	for _, process := range s.Processes {
		pids = append(pids, process.PID())
	}
	temp, err := filepath.Glob(filepath.Join(os.TempDir(), "mcpx-*"))
	require.NoError(t, err)
	require.NotEmpty(t, temp)
	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "stopping again changes nothing")
	for _, pid := range pids {
		require.True(t, proctest.Gone(pid), "process %d is still there", pid)
	}
	select {
	case err := <-s.Failed():
		t.Fatalf("what was stopped on purpose was reported as a failure: %v", err)
	default:
	}
}

func TestAPartThatEndsByItselfIsReported(t *testing.T) {
	s := start(t, stack.Options{Apps: true})
	s.Processes[workspace.Routing].Kill()
	select {
	case err := <-s.Failed():
		require.ErrorContains(t, err, "routing application")
	case <-time.After(wait):
		t.Fatal("nothing was reported")
	}
}

func TestDataSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, stack.Options{Apps: true, Worker: true, DataDir: dir})
	started, err := s.Client.Start(t.Context(), sdk.StartRequest{
		Plan: "provision-workspace", Input: json.RawMessage(`{"workspace": "acme"}`), Manifest: s.Manifest, Key: "once",
	})
	require.NoError(t, err)
	tx, err := s.Client.Wait(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxCommitted, tx.State)
	require.NoError(t, s.Stop())

	again := start(t, stack.Options{Apps: true, Worker: true, DataDir: dir})
	receipt, err := again.Client.Receipt(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, started.Run, receipt.Run)
	resources, err := again.Apps[workspace.Database].Resources(t.Context())
	require.NoError(t, err)
	require.Len(t, resources, 1)
}

func TestWhatDidStartIsStoppedWhenSomethingDoesNot(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	dir := t.TempDir()
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho 'no such luck' >&2\nexit 3\n"), 0o700))
	_, err := stack.Start(t.Context(), stack.Options{
		Manifest: examples(t), DataDir: dir, Apps: true, FreePorts: true, Binary: []string{broken},
	})
	require.ErrorIs(t, err, workspace.ErrNotReady)
	require.ErrorContains(t, err, "no such luck")
	_, running := devserver.Running(dir)
	require.False(t, running)

	// The directory is free again.
	s := start(t, stack.Options{DataDir: dir})
	require.NoError(t, s.Stop())
}

func TestARunningTemporalIsUsedWhereOneIsNamed(t *testing.T) {
	host := start(t, stack.Options{})
	s, err := stack.Start(t.Context(), stack.Options{
		Manifest: examples(t), External: &sdk.Options{Address: host.Address, Namespace: "another"},
		Apps: true, FreePorts: true, Worker: true,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop()) }()
	require.Nil(t, s.Server)
	require.Equal(t, "another", s.Namespace)
	started, err := s.Client.Start(t.Context(), sdk.StartRequest{
		Plan: "provision-workspace", Input: json.RawMessage(`{"workspace": "acme"}`), Manifest: s.Manifest,
	})
	require.NoError(t, err)
	tx, err := s.Client.Wait(t.Context(), started.ID)
	require.NoError(t, err)
	require.Equal(t, contract.TxCommitted, tx.State)
	require.Eventually(t, func() bool {
		listing, err := s.Client.List(t.Context(), sdk.ListFilter{State: contract.TxCommitted})
		return err == nil && len(listing.Transactions) == 1
	}, wait, poll, "the search attributes are registered there as well")
}

func TestAppServersAreRecognisedByTheirToolAndNameOrPort(t *testing.T) {
	m, err := manifest.Parse("mcpx.yaml", []byte(`version: 1
servers:
  db: {http: {url: "http://localhost:9101/mcp"}}
  web: {webmcp: {origin: "http://127.0.0.1:9104"}}
  routing: {http: {url: "http://127.0.0.1:4711/mcp"}}
  compute: {http: {url: "http://127.0.0.1:4712/mcp"}}
  theirs: {http: {url: "http://127.0.0.1:9102/mcp"}}
  elsewhere: {http: {url: "http://db.example:9101/mcp"}}
  child: {stdio: {command: [cat]}}
tools:
  db/create_database: {key: [name]}
  web/deploy: {key: [name]}
  routing/create_route: {key: [name]}
  elsewhere/create_database: {key: [name]}
  child/create_database: {key: [name]}
`))
	require.NoError(t, err)
	ports := map[string]int{}
	for name, app := range stack.AppServers(m) {
		ports[name] = app.Port
	}
	require.Equal(t, map[string]int{"db": 9101, "web": 9104, "routing": 4711}, ports,
		"neither a name nor a port alone is enough")
}

func TestAStackNeedsAManifest(t *testing.T) {
	_, err := stack.Start(t.Context(), stack.Options{Ephemeral: true})
	require.ErrorContains(t, err, "manifest")
}

func TestAnInterruptedStartLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := stack.Start(ctx, stack.Options{Manifest: examples(t), DataDir: dir, Apps: true, FreePorts: true, Worker: true})
	require.Error(t, err)
	require.ErrorIs(t, err, context.Canceled)
	_, running := devserver.Running(dir)
	require.False(t, running)
}

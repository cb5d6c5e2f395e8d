//go:build unix

package devserver_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
)

// The test binary plays temporal programs that misbehave: the variable says which one, and its value after a colon is
// for that one.
const (
	fakeVariable = "MCPX_TEST_FAKE_TEMPORAL"
	pidVariable  = "MCPX_TEST_FAKE_PIDS"
)

var fakes = map[string]func(args []string) int{
	// broken complains and ends.
	"broken": func([]string) int {
		fmt.Println("about to start")
		fmt.Fprintln(os.Stderr, "unknown flag: --of-tomorrow")
		return 3
	},
	// late finds its port taken, and notes each start in a file.
	"late": func([]string) int {
		note(os.Getpid())
		fmt.Fprint(os.Stderr, "can't set frontend port: listen tcp: bind: address already in use")
		return 1
	},
	// silent makes a database and never serves.
	"silent": func(args []string) int {
		if i := slices.Index(args, "--db-filename"); i >= 0 {
			if err := os.WriteFile(args[i+1], []byte("half a schema"), 0o600); err != nil {
				return 1
			}
		}
		note(os.Getpid())
		select {}
	},
	// environment prints the variables that it got.
	"environment": func([]string) int {
		fmt.Println("got PATH", os.Getenv("PATH"))
		for _, variable := range os.Environ() {
			if strings.HasPrefix(variable, "TEMPORAL_") {
				fmt.Println("got", variable)
			}
		}
		return 1
	},
}

func note(pid int) {
	file, err := os.OpenFile(os.Getenv(pidVariable), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = file.Close() }()
	_, _ = fmt.Fprintln(file, pid)
}

// fake makes the named program the one to start, and returns the file in which it notes its process ids.
func fake(t *testing.T, name string) (binary, pids string) {
	t.Helper()
	pids = filepath.Join(t.TempDir(), "pids")
	t.Setenv(fakeVariable, name)
	t.Setenv(pidVariable, pids)
	return os.Args[0], pids
}

func noted(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(text))
}

func TestProgramThatCannotBeRunIsNamed(t *testing.T) {
	dir := t.TempDir()
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: "/nonexistent/temporal", DataDir: dir})
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	require.ErrorContains(t, err, "/nonexistent/temporal")
	requireFree(t, dir)
}

// requireFree says that a failed start has given its directory up.
func requireFree(t *testing.T, dir string) {
	t.Helper()
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: "/nonexistent/temporal", DataDir: dir})
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	require.NotErrorIs(t, err, devserver.ErrInUse)
}

func TestEarlyEndIsReportedWithItsLog(t *testing.T) {
	binary, _ := fake(t, "broken")
	for _, o := range []devserver.Options{{DataDir: t.TempDir()}, {Ephemeral: true}} {
		o.Binary = binary
		_, err := devserver.Start(t.Context(), o)
		require.ErrorIs(t, err, devserver.ErrStartFailed)
		require.ErrorContains(t, err, "exit status 3")
		require.ErrorContains(t, err, "about to start")
		require.ErrorContains(t, err, "unknown flag: --of-tomorrow")
		if o.DataDir != "" {
			require.ErrorContains(t, err, filepath.Join(o.DataDir, "temporal.log"))
			requireFree(t, o.DataDir)
		}
	}
}

func TestPortsAreChosenAgainWhenOneIsTakenMeanwhile(t *testing.T) {
	binary, pids := fake(t, "late")
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: binary, Ephemeral: true})
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	require.Greater(t, len(noted(t, pids)), 1)
}

func TestServerThatNeverServesIsGivenUp(t *testing.T) {
	binary, pids := fake(t, "silent")
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := devserver.Start(ctx, devserver.Options{Binary: binary, DataDir: dir})
		failed <- err
	}()
	require.Eventually(t, func() bool { return len(noted(t, pids)) == 1 }, wait, tick)
	cancel()
	err := <-failed
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	require.ErrorIs(t, err, context.Canceled)
	pid, err := strconv.Atoi(noted(t, pids)[0])
	require.NoError(t, err)
	proctest.RequireGone(t, pid)
	requireFree(t, dir)
	require.NoFileExists(t, filepath.Join(dir, "temporal.db"), "a half-made database would stop every later start")
}

func TestFailedStartKeepsAnOlderDatabase(t *testing.T) {
	binary, _ := fake(t, "broken")
	dir := t.TempDir()
	db := filepath.Join(dir, "temporal.db")
	require.NoError(t, os.WriteFile(db, []byte("everything"), 0o600))
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: binary, DataDir: dir})
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	require.FileExists(t, db)
}

func TestServerIsNotSteeredByTheSettingsOfClients(t *testing.T) {
	binary, _ := fake(t, "environment")
	t.Setenv("TEMPORAL_ADDRESS", "elsewhere:7233")
	t.Setenv("TEMPORAL_PROFILE", "production")
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: binary, Ephemeral: true})
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	require.ErrorContains(t, err, "got PATH")
	require.NotContains(t, err.Error(), "got TEMPORAL_")
}

func TestTakenPortIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	taken := l.Addr().(*net.TCPAddr).Port
	for _, o := range []devserver.Options{{Port: taken}, {UI: true, UIPort: taken}} {
		o.Binary, o.Ephemeral = "temporal", true
		_, err := devserver.Start(t.Context(), o)
		require.ErrorIs(t, err, devserver.ErrPortInUse)
		require.ErrorContains(t, err, strconv.Itoa(taken))
	}
}

func TestOptionsWithoutADirectoryAreRefused(t *testing.T) {
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: "temporal"})
	require.ErrorContains(t, err, "data directory")
}

func TestLongLogIsSetAside(t *testing.T) {
	binary, _ := fake(t, "broken")
	dir := t.TempDir()
	log := filepath.Join(dir, "temporal.log")
	require.NoError(t, os.WriteFile(log, make([]byte, 9<<20), 0o600))
	_, err := devserver.Start(t.Context(), devserver.Options{Binary: binary, DataDir: dir})
	require.ErrorIs(t, err, devserver.ErrStartFailed)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Less(t, len(text), 1<<10)
	require.FileExists(t, log+".1")
}

package workspace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRestartKeepsAddressResourcesAndCounters(t *testing.T) {
	p := startApp(t, Routing)
	address, pid := p.URL(), p.PID()
	made := call(t.Context(), p.URL(), "create_route", route).resource(t)

	restart(t, p) // kills
	assert.Equal(t, address, p.URL())
	assert.NotEqual(t, pid, p.PID())
	require.NoError(t, p.Stop(t.Context()))
	restart(t, p)

	assert.Equal(t, []Resource{made}, resources(t, p))
	assert.Equal(t, int64(1), counted(t, p, "create_route"))
}

func TestEachApplicationOwnsItsData(t *testing.T) {
	dir := t.TempDir()
	started := map[Kind]*Process{}
	for _, app := range Apps() {
		p, err := Start(t.Context(), app.Kind, binary(t, "workspace"), dir, "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(p.Kill)
		started[app.Kind] = p
	}
	call(t.Context(), started[Database].URL(), "create_database", `{"name":"d","owner":"o"}`).resource(t)
	for kind, p := range started {
		want := 0
		if kind == Database {
			want = 1
		}
		assert.Len(t, resources(t, p), want, "%s", kind)
		assert.FileExists(t, fmt.Sprintf("%s/%s.db", dir, kind))
		assert.NoError(t, p.Client().Health(t.Context()))
		assert.Equal(t, kind, p.Kind())
	}
}

func TestExecutableThatMountsTheCommandStartsItself(t *testing.T) {
	self := append(binary(t, "example"), "workspace")
	var log bytes.Buffer
	p, err := Start(t.Context(), Database, self, t.TempDir(), "127.0.0.1:0", WithStderr(&log))
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	call(t.Context(), p.URL(), "create_database", `{"name":"d","owner":"o"}`).resource(t)
	require.NoError(t, p.Stop(t.Context()))
	assert.Contains(t, log.String(), "listening")
}

func TestStopAndKillEndTheProcessAndMayBeRepeated(t *testing.T) {
	p := startApp(t, Compute)
	require.NoError(t, p.Stop(t.Context()))
	require.NoError(t, p.Stop(t.Context()))
	p.Kill()
	<-p.Done()
	assert.Error(t, p.Client().Health(t.Context()))
}

func TestStartSaysWhyAnApplicationDidNotBecomeReady(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, busy.Close()) }()
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	notADir := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(notADir, nil, 0o600))

	for _, row := range []struct {
		name      string
		ctx       context.Context
		role, dir string
		addr      string
		says      string
	}{
		{"address in use", t.Context(), "workspace", t.TempDir(), busy.Addr().String(), "choose another address"},
		{"bad data directory", t.Context(), "workspace", notADir, "127.0.0.1:0", "data directory"},
		{"silence", brief, "mute", t.TempDir(), "127.0.0.1:0", "I say nothing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Start(row.ctx, Routing, binary(t, row.role), row.dir, row.addr)
			assert.ErrorIs(t, err, ErrNotReady)
			assert.ErrorContains(t, err, row.says)
		})
	}
	_, err = Start(t.Context(), "billing", binary(t, "workspace"), t.TempDir(), "")
	assert.ErrorContains(t, err, "database, compute, routing, frontend")
	_, err = Start(t.Context(), Routing, nil, t.TempDir(), "")
	assert.Error(t, err)
	_, err = Start(t.Context(), Routing, []string{t.TempDir() + "/absent"}, t.TempDir(), "")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestApplicationStopsWhenStandardInputIsClosed(t *testing.T) {
	cmd := exec.Command(binary(t, "workspace")[0], "workspace", "frontend", "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--exit-with-parent")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	var ready readyLine
	require.NoError(t, json.Unmarshal(line, &ready))
	assert.Equal(t, Frontend, ready.Kind)
	assert.Equal(t, cmd.Process.Pid, ready.PID)
	assert.NoError(t, NewClient(ready.URL).Health(t.Context()))

	require.NoError(t, stdin.Close())
	assert.NoError(t, cmd.Wait())
}

// playStarter starts an application, prints its URL and waits to be killed.
func playStarter(dir string) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	p, err := Start(context.Background(), Routing, []string{self, "workspace"}, dir, "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.URL())
	select {}
}

func TestApplicationDiesWithTheProcessThatStartedIt(t *testing.T) {
	role := binary(t, "starter")
	starter := exec.Command(role[0], role[1], t.TempDir())
	stdout, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	t.Cleanup(func() { _ = starter.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	at, err := url.Parse(string(bytes.TrimSpace([]byte(line))))
	require.NoError(t, err)

	require.NoError(t, starter.Process.Kill())
	require.Error(t, starter.Wait())
	eventually(t, "the application's end", func() bool {
		connection, err := net.DialTimeout("tcp", at.Host, time.Second)
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
}

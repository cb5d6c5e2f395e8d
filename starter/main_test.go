package starter_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/internal/proc/proctest"
	"github.com/mcpx-go/mcpx/starter"
	"github.com/mcpx-go/mcpx/starter/screen"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	wait = 60 * time.Second
	poll = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "MCPX_") && name != "MCPX_TEMPORAL" {
			_ = os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "mcpx-starter-")
	if err != nil {
		panic(err)
	}
	binary.path = filepath.Join(dir, "mcpx")
	_ = os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	_ = os.Setenv("USER", "tester")
	code := m.Run()
	if shared.stack != nil {
		if err := shared.stack.Stop(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// everything is every command, as package main lists them.
var everything = []starter.Command{
	starter.Dev, starter.Demo, starter.Worker, starter.Plan, starter.Start, starter.List, starter.Status, starter.Approve,
	starter.Reject, starter.Resume, starter.Abort, starter.Resolve, starter.Receipt, starter.Doctor, starter.Version, starter.Example,
}

// ran is what one run of mcpx did.
type ran struct {
	code     int
	out, err string
}

// typed is mcpx with somebody at the keyboard.
type typed struct {
	stdin       string
	interactive bool
	width       int
	data        string
}

func (who typed) mcpx(t *testing.T, args ...string) ran {
	t.Helper()
	var out, err proctest.Output
	app := starter.New(examplesText(t), strings.NewReader(who.stdin), screen.Plainly(&out, who.width), screen.Plainly(&err, who.width), everything...)
	app.Interactive = who.interactive
	if who.data == "" {
		who.data = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	code := app.Run(ctx, append([]string{"--data", who.data}, args...))
	return ran{code, out.String(), err.String()}
}

func mcpx(t *testing.T, args ...string) ran {
	t.Helper()
	return typed{}.mcpx(t, args...)
}

func (r ran) requireCode(t *testing.T, code int) ran {
	t.Helper()
	require.Equal(t, code, r.code, "stdout:\n%s\nstderr:\n%s", r.out, r.err)
	return r
}

// decode reads the one JSON value on standard output.
func (r ran) decode(t *testing.T, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.out), v), r.out)
}

// here is the directory of this package, wherever a test has gone.
func here(t *testing.T) string {
	t.Helper()
	require.NoError(t, hereErr)
	return hereDir
}

var hereDir, hereErr = os.Getwd()

func examplesFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(filepath.Dir(here(t)), "mcpx.yaml")
}

func examplesText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(examplesFile(t))
	require.NoError(t, err)
	return text
}

// requireGolden compares text with testdata/<test>.txt.
func requireGolden(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(here(t), "testdata", filepath.FromSlash(t.Name())+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), text)
}

// binary is mcpx as it is built for people.
var binary struct {
	once sync.Once
	path string
	err  error
	log  []byte
}

// built is the path of mcpx.
func built(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		build := exec.Command("go", "build", "-o", binary.path, "github.com/mcpx-go/mcpx")
		binary.log, binary.err = build.CombinedOutput()
	})
	require.NoError(t, binary.err, "build mcpx: %s", binary.log)
	return binary.path
}

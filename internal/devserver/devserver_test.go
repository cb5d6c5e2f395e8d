//go:build unix

package devserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"

	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/devserver/devtest"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
)

const (
	wait = 30 * time.Second
	tick = 20 * time.Millisecond

	namespace = "mcpx-test"
	retention = 30 * 24 * time.Hour
)

// parentFlag makes the test binary a parent that starts a server on the directory in its second argument and stays.
const parentFlag = "-devserver-test-parent"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == parentFlag {
		if _, err := devserver.Start(context.Background(), devserver.Options{DataDir: os.Args[2]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	if name := os.Getenv(fakeVariable); name != "" && len(os.Args) > 1 && os.Args[1] == "server" {
		os.Exit(fakes[name](os.Args))
	}
	goleak.VerifyTestMain(m)
}

var attributes = map[string]enumspb.IndexedValueType{
	"McpxState": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"McpxTools": enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}

func options(dataDir string) devserver.Options {
	return devserver.Options{
		DataDir:          dataDir,
		Namespace:        namespace,
		Retention:        retention,
		SearchAttributes: attributes,
	}
}

func connect(t *testing.T, s *devserver.Server) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: s.Address(), Namespace: namespace})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func retentionOf(t *testing.T, c client.Client, name string) time.Duration {
	t.Helper()
	response, err := c.WorkflowService().DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: name})
	require.NoError(t, err)
	return response.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
}

func attributesOf(t *testing.T, c client.Client) map[string]enumspb.IndexedValueType {
	t.Helper()
	response, err := c.OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	require.NoError(t, err)
	return response.GetCustomAttributes()
}

// startWorkflow starts a workflow that nobody will run, marked with a state.
func startWorkflow(t *testing.T, c client.Client, id string) {
	t.Helper()
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID:        id,
		TaskQueue: "nobody",
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword("McpxState").ValueSet("RUNNING"),
			temporal.NewSearchAttributeKeyKeywordList("McpxTools").ValueSet([]string{"a/b", "c/d"}),
		),
	}, "Sleep")
	require.NoError(t, err)
}

func requireRunning(t *testing.T, c client.Client, id string) {
	t.Helper()
	described, err := c.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.Status)
}

func TestNamespaceAndAttributesCanBeUsedAsSoonAsStartReturns(t *testing.T) {
	dir := t.TempDir()
	s := devtest.Start(t, options(dir))
	c := connect(t, s)
	startWorkflow(t, c, "first")
	require.Equal(t, retention, retentionOf(t, c, namespace))
	have := attributesOf(t, c)
	for name, kind := range attributes {
		require.Equal(t, kind, have[name], name)
	}
	require.Eventually(t, func() bool {
		found, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: `McpxState = "RUNNING" AND McpxTools = "c/d"`,
		})
		return err == nil && found.GetCount() == 1
	}, wait, tick)
}

func TestServerListensOnLoopbackOnly(t *testing.T) {
	s := devtest.Start(t, devserver.Options{UI: true})
	host, _, err := net.SplitHostPort(s.Address())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	require.True(t, strings.HasPrefix(s.UIURL(), "http://127.0.0.1:"), s.UIURL())
	require.Eventually(t, func() bool {
		response, err := http.Get(s.UIURL())
		if err != nil {
			return false
		}
		http.DefaultClient.CloseIdleConnections()
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, wait, tick)
}

func TestRestartOnTheSameDirectoryKeepsEverything(t *testing.T) {
	for _, end := range []struct {
		name string
		stop func(*devserver.Server) error
	}{
		{"after an orderly stop", func(s *devserver.Server) error { return s.Stop(context.Background()) }},
		{"after a crash", (*devserver.Server).Kill},
	} {
		t.Run(end.name, func(t *testing.T) {
			o := options(t.TempDir())
			first := devtest.Start(t, o)
			startWorkflow(t, connect(t, first), "kept")
			require.NoError(t, end.stop(first))
			require.NoError(t, first.Err())

			// Its clients reconnect to the same address.
			_, port, err := net.SplitHostPort(first.Address())
			require.NoError(t, err)
			o.Port, err = strconv.Atoi(port)
			require.NoError(t, err)
			o.Retention = time.Hour
			second := devtest.Start(t, o)
			require.Equal(t, first.Address(), second.Address())
			c := connect(t, second)
			requireRunning(t, c, "kept")
			require.Equal(t, retention, retentionOf(t, c, namespace), "a shorter wish must not shorten it")
		})
	}
}

func TestRetentionIsRaisedButNeverShortened(t *testing.T) {
	s := devtest.Start(t, options(t.TempDir()))
	c := connect(t, s)
	const name = "raised"
	for _, step := range []struct{ ask, have time.Duration }{
		{0, devserver.DefaultRetention},
		{devserver.DefaultRetention + time.Hour, devserver.DefaultRetention + time.Hour},
		{time.Hour, devserver.DefaultRetention + time.Hour},
		{0, devserver.DefaultRetention + time.Hour},
		{retention, retention},
	} {
		require.NoError(t, devserver.EnsureNamespace(t.Context(), c, name, step.ask))
		require.Equal(t, step.have, retentionOf(t, c, name), "asked for %s", step.ask)
	}
}

func TestAttributeOfAnotherTypeIsRefused(t *testing.T) {
	s := devtest.Start(t, options(t.TempDir()))
	c := connect(t, s)
	err := devserver.EnsureSearchAttributes(t.Context(), c, namespace,
		map[string]enumspb.IndexedValueType{"McpxState": enumspb.INDEXED_VALUE_TYPE_INT})
	require.ErrorIs(t, err, devserver.ErrWrongType)
	require.ErrorContains(t, err, "McpxState")
	require.NoError(t, devserver.EnsureSearchAttributes(t.Context(), c, namespace, attributes), "again")
}

func TestDirectoryServesOneServerAtATime(t *testing.T) {
	dir := t.TempDir()
	first := devtest.Start(t, options(dir))
	_, err := devserver.Start(t.Context(), options(dir))
	require.ErrorIs(t, err, devserver.ErrInUse)
	for _, part := range []string{dir, first.Address(), strconv.Itoa(first.Pid()), strconv.Itoa(os.Getpid())} {
		require.ErrorContains(t, err, part)
	}
	requireRunningServer(t, dir, first)
}

func requireRunningServer(t *testing.T, dir string, s *devserver.Server) {
	t.Helper()
	info, ok := devserver.Running(dir)
	require.True(t, ok)
	require.Equal(t, devserver.Info{Address: s.Address(), UI: s.UIURL(), PID: s.Pid(), Owner: os.Getpid()}, info)
}

func TestAddressFileTellsWhoRuns(t *testing.T) {
	dir := t.TempDir()
	_, ok := devserver.Running(dir)
	require.False(t, ok, "nothing was started yet")

	o := options(dir)
	o.UI = true
	s := devtest.Start(t, o)
	requireRunningServer(t, dir, s)
	text, err := os.ReadFile(filepath.Join(dir, "temporal.json"))
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, json.Unmarshal(text, &file))
	require.Equal(t, s.Address(), file["address"])

	require.NoError(t, s.Stop(t.Context()))
	_, ok = devserver.Running(dir)
	require.False(t, ok)
	require.NoFileExists(t, filepath.Join(dir, "temporal.json"))
}

func TestStopLeavesNoProcess(t *testing.T) {
	s := devtest.Start(t, devserver.Options{})
	pid := s.Pid()
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, s.Stop(t.Context()))
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	require.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH)
	require.NoError(t, s.Err())
	require.NoError(t, s.Stop(t.Context()), "again")
	require.NoError(t, s.Kill(), "again")
}

func TestServerThatEndsByItselfIsReported(t *testing.T) {
	dir := t.TempDir()
	s := devtest.Start(t, options(dir))
	require.NoError(t, s.Err())
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
	select {
	case <-s.Done():
	case <-time.After(wait):
		t.Fatal("the end was not noticed")
	}
	require.ErrorIs(t, s.Err(), devserver.ErrEnded)
	require.ErrorContains(t, s.Err(), "signal: killed")
	require.ErrorContains(t, s.Err(), "temporal.log")
	_, ok := devserver.Running(dir)
	require.False(t, ok)
}

func TestNoServerOutlivesAKilledParent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	dir := t.TempDir()
	parent := exec.Command(os.Args[0], parentFlag, dir)
	parent.Stderr = os.Stderr
	require.NoError(t, parent.Start())
	ended := make(chan error, 1)
	go func() { ended <- parent.Wait() }()

	var info devserver.Info
	require.Eventually(t, func() bool {
		var ok bool
		info, ok = devserver.Running(dir)
		return ok
	}, wait, tick)
	require.Equal(t, parent.Process.Pid, info.Owner)
	require.NoError(t, parent.Process.Kill())
	require.Error(t, <-ended)

	// At once: the next owner waits for the dying server.
	s := devtest.Start(t, options(dir))
	proctest.RequireGone(t, info.PID)
	requireRunningServer(t, dir, s)
}

func TestCallerGetsACopyOfTheLog(t *testing.T) {
	var copied strings.Builder
	dir := t.TempDir()
	o := options(dir)
	o.LogWriter, o.LogLevel = &copied, "info"
	s := devtest.Start(t, o)
	require.NoError(t, s.Stop(t.Context()))
	file, err := os.ReadFile(filepath.Join(dir, "temporal.log"))
	require.NoError(t, err)
	require.NotEmpty(t, file)
	require.Equal(t, copied.String(), string(file))
}

package workspace

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func testLog(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.DiscardHandler)
}

// serve runs an application in this process and returns its URL and its stop.
func serve(t testing.TB, cfg Config) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg.Addr = "127.0.0.1:0"
	cfg.OnReady = func(addr string) { ready <- addr }
	go func() { ended <- Serve(ctx, cfg) }()
	select {
	case addr := <-ready:
		return mcpURL(addr), func() error { cancel(); return <-ended }
	case err := <-ended:
		cancel()
		require.NoError(t, err)
		return "", nil
	}
}

func TestServeStopsCleanlyWhateverIsInFlight(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	url, stop := serve(t, Config{Kind: Routing, DBPath: filepath.Join(t.TempDir(), "own.db"), Logger: testLog(t)})
	connections := &http.Transport{}
	app := NewClient(url)
	app.HTTP = &http.Client{Transport: connections}
	for _, fault := range []FaultKind{Hang, Slow, LateCommit} {
		ms := int64(0)
		if fault.takesMS() {
			ms = maxFaultDelay.Milliseconds()
		}
		require.NoError(t, app.SetFault(t.Context(), Fault{Tool: "create_route", Fault: fault, MS: ms}))
	}
	answered := make(chan seen, 3)
	for range 3 {
		go func() { answered <- call(t.Context(), url, "create_route", route) }()
	}
	eventually(t, "the faults' use", func() bool {
		armed, err := app.Faults(t.Context())
		return err == nil && len(armed) == 0
	})
	require.NoError(t, stop())
	for range 3 {
		assert.Error(t, (<-answered).err)
	}
	connections.CloseIdleConnections()
	goleak.VerifyNone(t, leaks)
}

func TestServeRefusesWhatItCannotRun(t *testing.T) {
	for _, row := range []struct {
		cfg  Config
		says string
	}{
		{Config{Kind: "billing", DataDir: t.TempDir()}, "database, compute, routing, frontend"},
		{Config{Kind: Routing}, "data directory"},
		{Config{Kind: Routing, DataDir: t.TempDir(), Addr: "127.0.0.1:none"}, "choose another address"},
	} {
		assert.ErrorContains(t, Serve(t.Context(), row.cfg), row.says)
	}
}

func TestDataPathMayHoldAnyCharacter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b%20?#ü&_pragma=x")
	for range 2 {
		_, stop := serve(t, Config{Kind: Compute, DataDir: dir})
		require.NoError(t, stop())
		assert.FileExists(t, filepath.Join(dir, "compute.db"))
	}
}

// Both eras of MCP work, and neither notices a restart.
func TestClientsOfBothErasSurviveARestart(t *testing.T) {
	for name, version := range map[string]client.ClientOption{
		mcp.ProtocolVersion20260728: client.WithProtocolVersion(mcp.ProtocolVersion20260728),
		"2025-11-25":                client.WithProtocolVersion("2025-11-25"),
	} {
		t.Run(name, func(t *testing.T) {
			p := startApp(t, Database)
			c := mcpClient(t, p.URL(), version)
			hello, err := c.Initialize(t.Context(), mcp.InitializeRequest{})
			require.NoError(t, err)
			assert.Equal(t, name, hello.ProtocolVersion)
			assert.Equal(t, "workspace-database", hello.ServerInfo.Name)

			create := mcp.CallToolRequest{Params: mcp.CallToolParams{
				Name: "create_database", Arguments: map[string]any{"name": "d", "owner": "o", "size_gb": int64(9007199254740993)},
			}}
			for n := range 2 {
				tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
				require.NoError(t, err)
				require.Len(t, tools.Tools, 4)
				for _, tool := range tools.Tools {
					assert.NotEmpty(t, tool.Description)
				}
				made, err := c.CallTool(t.Context(), create)
				require.NoError(t, err)
				assert.False(t, made.IsError)
				assert.Len(t, resources(t, p), n+1)
				assert.Equal(t, "9007199254740993", string(resources(t, p)[n].Fields["size_gb"]))
				restart(t, p)
			}
		})
	}
}

func mcpClient(t *testing.T, url string, option client.ClientOption) *client.Client {
	t.Helper()
	wire, err := transport.NewStreamableHTTP(url)
	require.NoError(t, err)
	c := client.NewClient(wire, option)
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	url, stop := serve(t, Config{Kind: Routing, DataDir: t.TempDir()})
	defer func() { assert.NoError(t, stop()) }()
	base := strings.TrimSuffix(url, mcpPath)
	local := strings.TrimPrefix(base, "http://")
	for _, row := range []struct {
		name, method, path, host, origin string
		status                           int
	}{
		{"no origin", http.MethodPost, "/reset", local, "", http.StatusOK},
		{"own origin", http.MethodPost, "/reset", local, base, http.StatusOK},
		{"localhost", http.MethodGet, "/resources", "localhost", "", http.StatusOK},
		{"rebound name", http.MethodGet, "/resources", "evil.example", "", http.StatusForbidden},
		{"rebound name on MCP", http.MethodPost, mcpPath, "evil.example:9103", "", http.StatusForbidden},
		{"foreign page", http.MethodPost, "/reset", local, "https://evil.example", http.StatusForbidden},
		{"foreign page on MCP", http.MethodPost, mcpPath, local, "https://evil.example", http.StatusForbidden},
		{"wrong method", http.MethodGet, "/reset", local, "", http.StatusMethodNotAllowed},
		{"unknown path", http.MethodGet, "/nothing", local, "", http.StatusNotFound},
	} {
		t.Run(row.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), row.method, base+row.path, nil)
			require.NoError(t, err)
			request.Host = row.host
			if row.origin != "" {
				request.Header.Set("Origin", row.origin)
			}
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, row.status, response.StatusCode)
		})
	}
}

func TestUnknownToolIsNotCounted(t *testing.T) {
	url, stop := serve(t, Config{Kind: Routing, DataDir: t.TempDir()})
	defer func() { assert.NoError(t, stop()) }()
	answer := call(t.Context(), url, "create_database", `{}`).reply(t)
	require.NotNil(t, answer.Error)
	assert.Equal(t, -32602, answer.Error.Code)
	counts, err := NewClient(url).Calls(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, counts, "create_database")
}

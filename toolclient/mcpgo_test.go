//go:build unix

package toolclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// realServer is mcp-go's own server over streamable HTTP.
type realServer struct {
	contract.Server
	http     *httptest.Server
	executed atomic.Int64
	requests atomic.Int64 // tools/call on the wire
	mu       sync.Mutex
	versions []string
	mirrored []string
}

func newRealServer(t *testing.T, opts ...server.StreamableHTTPOption) *realServer {
	s := &realServer{}
	m := server.NewMCPServer("real", "1", server.WithToolCapabilities(true), server.WithPaginationLimit(2))
	for _, name := range []string{"create", "get", "delete"} {
		schema := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer"}}}`)
		m.AddTool(mcp.NewToolWithRawSchema(name, "a tool", schema), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.executed.Add(1)
			args, _ := req.GetRawArguments().(json.RawMessage)
			if strings.Contains(string(args), "slow") {
				select {
				case <-ctx.Done():
				case <-time.After(300 * time.Millisecond):
				}
			}
			return mcp.NewToolResultText(name + " " + string(args)), nil
		})
	}
	h := server.NewStreamableHTTPServer(m, opts...)
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			s.requests.Add(1)
		}
		s.mu.Lock()
		s.mirrored = append(s.mirrored, r.Header.Get("Mcp-Param-Region"))
		s.versions = append(s.versions, r.Header.Get("Mcp-Protocol-Version"))
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.http.Close)
	s.Server = contract.Server{Name: "real", HTTP: &contract.HTTPServer{URL: s.http.URL}}
	return s
}

func TestMCPGoServerInEveryEra(t *testing.T) {
	tests := map[string]struct {
		options []server.StreamableHTTPOption
		version string
	}{
		"modern":           {nil, "2026-07-28"},
		"legacy, sessions": {[]server.StreamableHTTPOption{server.WithStreamableHTTPProtocolVersions("2025-11-25"), server.WithStateful(true)}, "2025-11-25"},
		"legacy, without":  {[]server.StreamableHTTPOption{server.WithStreamableHTTPProtocolVersions("2025-11-25"), server.WithStateLess(true)}, "2025-11-25"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newRealServer(t, test.options...)
			p, _ := newPool(t, Options{}, s.Server)
			tools, err := p.Tools(within(t, wait), s.Ref())
			require.NoError(t, err)
			require.Len(t, tools, 3, "more than a page")

			c := mutation(wait)
			c.Args = json.RawMessage(`{"n":9007199254740993,"region":"Zürich"}`)
			r := p.Call(within(t, wait), s.Ref(), c)
			require.Equal(t, contract.Answered, r.Written, r.Why)
			require.Nil(t, r.Error)
			require.True(t, r.Complete())
			require.Contains(t, string(r.Result), `create {\"n\":9007199254740993,\"region\":\"Zürich\"}`)

			c.Tool = "nope"
			r = p.Call(within(t, wait), s.Ref(), c)
			require.Equal(t, contract.Answered, r.Written, r.Why)
			require.NotNil(t, r.Error)
			require.EqualValues(t, -32602, r.Error.Code)
			require.EqualValues(t, 1, s.executed.Load())
			require.Equal(t, test.version, s.versions[len(s.versions)-1])
			if name == "modern" {
				require.EqualValues(t, 2, s.requests.Load())
				require.Contains(t, s.mirrored, "=?base64?WsO8cmljaA==?=", "an argument that the server wants in a header")
			}
		})
	}
}

func TestMCPGoServerSlowAnswerIsLearnedLater(t *testing.T) {
	for name, options := range map[string][]server.StreamableHTTPOption{
		"modern": nil,
		"legacy": {server.WithStreamableHTTPProtocolVersions("2025-11-25"), server.WithStateful(true)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRealServer(t, options...)
			p, _ := newPool(t, Options{}, s.Server)
			open(t, p, s.Ref())
			c := mutation(100 * time.Millisecond)
			c.Args = json.RawMessage(`{"region":"slow"}`)
			r := p.Call(within(t, 150*time.Millisecond), s.Ref(), c)
			require.Equal(t, contract.FullyWritten, r.Written, r.Why)
			require.Eventually(t, func() bool { _, ok := p.Late(s.Ref(), c.ID); return ok }, wait, tick)
			late, _ := p.Late(s.Ref(), c.ID)
			require.Contains(t, string(late.Result), "create")
			require.EqualValues(t, 1, s.executed.Load())
		})
	}
}

func TestManyCallsAtOnceAreDeliveredOnceEach(t *testing.T) {
	s := newRealServer(t)
	p, _ := newPool(t, Options{}, s.Server)
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			if r := p.Call(within(t, wait), s.Ref(), mutation(wait)); r.Written != contract.Answered || r.Error != nil {
				t.Error(r.Why)
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 100, s.executed.Load())
}

//go:build unix

package toolclient

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
)

func TestEraOfAStdioServerIsFound(t *testing.T) {
	tests := []struct {
		era     string
		methods []string // in this order, over all processes
		why     string   // where there is no session
	}{
		{"modern", []string{"server/discover", "tools/call"}, ""},
		{"legacy", []string{"server/discover", "initialize", "notifications/initialized", "tools/call"}, ""},
		{"old", []string{"server/discover", "initialize", "notifications/initialized", "tools/call"}, ""},
		{"dual", []string{"server/discover", "initialize", "notifications/initialized", "tools/call"}, ""},
		{"silent", []string{"server/discover", "initialize", "notifications/initialized", "tools/call"}, ""},
		{"slow", []string{"server/discover", "initialize", "tools/call"}, ""},
		{"exit", []string{"server/discover", "initialize", "notifications/initialized", "tools/call"}, ""},
		{"alien", []string{"server/discover"}, "speaks only the protocol versions 2031-01-01"},
		{"unheard", []string{"server/discover", "initialize"}, `protocol version "1999-01-01"`},
	}
	for _, test := range tests {
		t.Run(test.era, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, "echo", test.era)
			o := Options{}
			if test.era == "silent" || test.era == "slow" {
				o.DiscoverTimeout = 500 * time.Millisecond
			}
			p, _ := newPool(t, o, s.server())
			c := mutation(wait)
			c.Meta = map[string]json.RawMessage{"dev.mcpx/tx": json.RawMessage(`"t1"`)}
			r := p.Call(within(t, wait), s.server().Ref(), c)
			require.Equal(t, test.methods, s.lines("methods"))
			if test.why != "" {
				require.Equal(t, contract.NotWritten, r.Written)
				require.Contains(t, r.Why, test.why)
				return
			}
			require.Equal(t, contract.Answered, r.Written, r.Why)
			var echo struct{ Meta map[string]any }
			require.NoError(t, json.Unmarshal(r.Result, &echo))
			require.Equal(t, "t1", echo.Meta["dev.mcpx/tx"])
			if test.era != "modern" && test.era != "slow" {
				require.Len(t, echo.Meta, 1)
				return
			}
			require.Equal(t, "2026-07-28", echo.Meta["io.modelcontextprotocol/protocolVersion"])
			require.Equal(t, map[string]any{}, echo.Meta["io.modelcontextprotocol/clientCapabilities"], "no capability is ever offered")
			require.Equal(t, map[string]any{"name": "mcpx", "version": "0"}, echo.Meta["io.modelcontextprotocol/clientInfo"])
		})
	}
}

func TestKnownLegacyServerIsNotProbedAgain(t *testing.T) {
	s := newScripted(t, "answers and exits", "silent")
	p, _ := newPool(t, Options{DiscoverTimeout: 200 * time.Millisecond}, s.server())
	for range 2 {
		require.Equal(t, contract.Answered, p.Call(within(t, wait), s.server().Ref(), mutation(wait)).Written)
		awaitEnd(t, p, s.server().Ref())
	}
	require.Equal(t, 1, strings.Count(strings.Join(s.lines("methods"), " "), "server/discover"))
}

func TestServersRequestsAreAnsweredWithoutOfferingAnything(t *testing.T) {
	s := newScripted(t, "asks", "legacy")
	p, _ := newPool(t, Options{}, s.server())
	require.Equal(t, contract.Answered, p.Call(within(t, wait), s.server().Ref(), mutation(wait)).Written)
	require.Eventually(t, func() bool { return len(s.lines("answers")) == 2 }, wait, tick)
	require.Contains(t, s.lines("answers")[0], `"id":1,"error":{"code":-32601`)
	require.Equal(t, `{"jsonrpc":"2.0","id":"p","result":{}}`, s.lines("answers")[1])
}

func TestToolsAreListedWithEveryPageAndByte(t *testing.T) {
	s := newScripted(t, "lists pages", "legacy")
	p, _ := newPool(t, Options{}, s.server())
	tools, err := p.Tools(within(t, wait), s.server().Ref())
	require.NoError(t, err)
	require.Len(t, tools, 2)
	require.Equal(t, "create", tools[0].Name)
	require.Equal(t, `{"destructiveHint":true}`, string(tools[0].Annotations))
	require.Equal(t, `{"name":"create","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true},"x":1}`, string(tools[0].Raw))
	require.Equal(t, "get", tools[1].Name)
	require.Equal(t, "d", tools[1].Description)
	require.Equal(t, `{}`, string(tools[1].InputSchema))
}

func TestEndlessListOfToolsIsAnError(t *testing.T) {
	s := newScripted(t, "lists for ever", "modern")
	p, _ := newPool(t, Options{}, s.server())
	_, err := p.Tools(within(t, wait), s.server().Ref())
	require.ErrorContains(t, err, "repeats a cursor")
}

func TestServerIsStartedWithItsEnvironmentAndSecretsStayHidden(t *testing.T) {
	const secret = "s3cr3t-token-value"
	t.Setenv("TOOLCLIENT_TEST_TOKEN", secret)
	s := newScripted(t, "shows its environment", "modern")
	server := s.server()
	server.Secrets = []string{"TOOLCLIENT_TEST_TOKEN"}
	server.Stdio.Dir = s.dir
	server.Stdio.Env = map[string]string{"TOKEN": "Bearer ${secret:TOOLCLIENT_TEST_TOKEN}", "PLAIN": "yes"}
	copied := &proctest.Output{}
	p, logged := newPool(t, Options{Stderr: stderrTo(copied)}, server)
	r := p.Call(within(t, wait), server.Ref(), mutation(wait))
	require.Equal(t, contract.Answered, r.Written, r.Why)
	var result struct{ Env []string }
	require.NoError(t, json.Unmarshal(r.Result, &result))
	require.Equal(t, "Bearer "+secret, result.Env[0])
	require.Equal(t, "yes", result.Env[1])
	require.True(t, sameDir(t, s.dir, result.Env[2]))
	require.Eventually(t, func() bool { return strings.Contains(copied.String(), "my token is") }, wait, tick)
	require.NotContains(t, copied.String()+logged.String(), secret)
	require.Contains(t, logged.String(), "[REDACTED]")
}

func sameDir(t *testing.T, a, b string) bool {
	ia, err := os.Stat(a)
	require.NoError(t, err)
	ib, err := os.Stat(b)
	require.NoError(t, err)
	return os.SameFile(ia, ib)
}

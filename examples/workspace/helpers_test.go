package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// The test executable plays other programs when its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "workspace":
			os.Exit(Main(os.Args[2:]))
		case "example":
			root := &cobra.Command{Use: "host"}
			example := &cobra.Command{Use: "example"}
			example.AddCommand(Command())
			root.AddCommand(example)
			if root.Execute() != nil {
				os.Exit(1)
			}
			os.Exit(0)
		case "starter":
			os.Exit(playStarter(os.Args[2]))
		case "mute":
			fmt.Fprintln(os.Stderr, "I say nothing")
			select {}
		}
	}
	os.Exit(m.Run())
}

func binary(t testing.TB, role string) []string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return []string{self, role}
}

// startApp runs an application in a process of its own.
func startApp(t testing.TB, kind Kind) *Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := Start(ctx, kind, binary(t, "workspace"), t.TempDir(), "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func restart(t testing.TB, p *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, p.Restart(ctx))
}

func arm(t testing.TB, p *Process, fault Fault) {
	t.Helper()
	require.NoError(t, p.Client().SetFault(t.Context(), fault))
}

func resources(t testing.TB, p *Process) []Resource {
	t.Helper()
	found, err := p.Client().Resources(t.Context())
	require.NoError(t, err)
	return found
}

func counted(t testing.TB, p *Process, tool string) int64 {
	t.Helper()
	counts, err := p.Client().Calls(t.Context())
	require.NoError(t, err)
	return counts[tool]
}

// eventually polls a condition about the application.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, what)
}

// seen is what a client sees of one call.
type seen struct {
	err    error // no complete HTTP response
	status int
	header http.Header
	body   []byte
}

// reply is a JSON-RPC reply.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Result struct {
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

func (s seen) reply(t testing.TB) reply {
	t.Helper()
	require.NoError(t, s.err)
	var r reply
	require.NoError(t, json.Unmarshal(s.body, &r), "%s", s.body)
	return r
}

// code returns the code of an error result, and checks that its text says the
// same as its structure.
func (s seen) code(t testing.TB) string {
	t.Helper()
	r := s.reply(t)
	require.True(t, r.Result.IsError, "%s", s.body)
	require.NotEmpty(t, r.Result.Content)
	require.JSONEq(t, string(r.Result.StructuredContent), r.Result.Content[0].Text)
	var e struct {
		Error struct{ Code, Message string }
	}
	require.NoError(t, json.Unmarshal(r.Result.StructuredContent, &e))
	require.NotEmpty(t, e.Error.Message)
	return e.Error.Code
}

// structured returns the structured content of a success, and checks that its
// text says the same.
func (s seen) structured(t testing.TB) json.RawMessage {
	t.Helper()
	r := s.reply(t)
	require.Nil(t, r.Error, "%s", s.body)
	require.False(t, r.Result.IsError, "%s", s.body)
	require.NotEmpty(t, r.Result.Content)
	require.Equal(t, string(r.Result.StructuredContent), r.Result.Content[0].Text)
	return r.Result.StructuredContent
}

func (s seen) resource(t testing.TB) Resource {
	t.Helper()
	var r Resource
	require.NoError(t, json.Unmarshal(s.structured(t), &r))
	return r
}

// call sends one tools/call, byte for byte and once, on a connection of its
// own, in the form of revision 2026-07-28.
func call(ctx context.Context, url, tool, args string) seen {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s,`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return seen{err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", "tools/call")
	request.Header.Set("Mcp-Name", tool)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return seen{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	s := seen{status: response.StatusCode, header: response.Header}
	s.body, s.err = io.ReadAll(response.Body)
	return s
}

const route = `{"workspace":"w","name":"w-route","target":"vm_1","owner":"tx-1"}`

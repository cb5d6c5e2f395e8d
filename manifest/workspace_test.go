package manifest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/manifest"
)

// schemasOf runs an application and asks it for the input schemas of its tools.
func schemasOf(t *testing.T, kind workspace.Kind) map[string]json.RawMessage {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- workspace.Serve(ctx, workspace.Config{
			Kind: kind, Addr: "127.0.0.1:0", DataDir: t.TempDir(), OnReady: func(addr string) { ready <- addr },
		})
	}()
	var addr string
	select {
	case addr = <-ready:
	case err := <-done:
		require.NoError(t, err)
	}
	defer func() {
		stop()
		require.NoError(t, <-done)
	}()
	c, err := client.NewStreamableHttpClient("http://" + addr + "/mcp")
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Start(ctx))
	_, err = c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}})
	require.NoError(t, err)
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	require.NoError(t, err)
	schemas := map[string]json.RawMessage{}
	for _, tool := range list.Tools {
		raw, err := json.Marshal(tool)
		require.NoError(t, err)
		var shape struct {
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		require.NoError(t, json.Unmarshal(raw, &shape))
		schemas[tool.Name] = shape.InputSchema
	}
	return schemas
}

func TestTheManifestOfTheWorkspaceAgreesWithItsApplications(t *testing.T) {
	m, err := manifest.Load("../mcpx.yaml")
	require.NoError(t, err)
	p, err := m.Plan("provision-workspace")
	require.NoError(t, err)
	assert.Empty(t, p.Warnings)
	var order []string
	for _, s := range p.Definition.Steps {
		order = append(order, s.ID)
	}
	assert.Equal(t, []string{"database", "compute", "routing", "frontend"}, order)
	for _, app := range workspace.Apps() {
		schemas := schemasOf(t, app.Kind)
		assert.Len(t, schemas, len(app.Tools()))
		assert.Empty(t, m.Check(string(app.Kind), schemas), app.Kind)
		assert.Equal(t, "http://"+app.Addr()+"/mcp", m.Servers[string(app.Kind)].HTTP.URL)
		for _, name := range app.Tools() {
			_, listed := m.Tool(string(app.Kind) + "/" + name)
			assert.True(t, listed, name)
		}
		create, _ := m.Tool(string(app.Kind) + "/" + app.Create)
		assert.True(t, create.Compensable())
		assert.Equal(t, []contract.Proof{contract.ProofTx}, create.Inspect.Proves)
	}
}

func TestTheComposeManifestDiffersInItsServersOnly(t *testing.T) {
	base, err := manifest.Load("../mcpx.yaml")
	require.NoError(t, err)
	m, err := manifest.Load("../examples/workspace/mcpx.compose.yaml")
	require.NoError(t, err)
	assert.Equal(t, base.Tools, m.Tools)
	assert.Equal(t, "http://routing:9103/mcp", m.Servers["routing"].HTTP.URL)
	again, err := m.WithServers(base.Servers)
	require.NoError(t, err)
	assert.Equal(t, base.Plans[0].Definition, again.Plans[0].Definition)
	assert.NotEqual(t, base.Plans[0].Definition.Digest, m.Plans[0].Definition.Digest)
}

func TestTheDemoRunsTheSameManifestOnOtherPorts(t *testing.T) {
	m, err := manifest.Load("../mcpx.yaml")
	require.NoError(t, err)
	moved, err := m.WithServers(map[string]contract.Server{
		"database": {HTTP: &contract.HTTPServer{URL: "http://127.0.0.1:4711/mcp"}},
		"extra":    {Name: "extra", Stdio: &contract.StdioServer{Command: []string{"x"}}},
	})
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:4711/mcp", moved.Servers["database"].HTTP.URL)
	assert.Equal(t, "http://127.0.0.1:9101/mcp", m.Servers["database"].HTTP.URL, "the manifest itself stays")
	assert.Contains(t, moved.Servers, "extra")
	assert.Equal(t, moved.Servers["database"].Ref(), moved.Plans[0].Definition.Servers["database"])
	assert.NotContains(t, moved.Plans[0].Definition.Servers, "extra", "no step uses it")
	twice, err := moved.WithServers(map[string]contract.Server{"compute": {HTTP: &contract.HTTPServer{URL: "http://127.0.0.1:4712/mcp"}}})
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:4711/mcp", twice.Servers["database"].HTTP.URL, "replacements add up")

	for _, wrong := range []map[string]contract.Server{
		{"database": {Name: "other", HTTP: &contract.HTTPServer{URL: "http://h/"}}},
		{"database": {}},
		{"bad name": {HTTP: &contract.HTTPServer{URL: "http://h/"}}},
	} {
		_, err := m.WithServers(wrong)
		assert.Error(t, err)
	}
}

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Error codes of error results.
const (
	codeNotFound = "NOT_FOUND"
	codeInvalid  = "INVALID"
	codeRejected = "REJECTED"
)

// version is what the applications report as their own.
const version = "1.0.0"

// operation is one tool of an application.
type operation struct {
	name, doc string
	input     input
	output    object
	hints     []mcp.ToolOption
	run       func(context.Context, values) (*mcp.CallToolResult, error)
}

func (a *application) operations() []operation {
	return []operation{
		{
			name: a.Create, input: a.createInput(), output: a.createSchema(), run: a.create,
			doc:   fmt.Sprintf("Creates a %s. Every call makes a new one, also under a name that exists.", a.noun),
			hints: hints(false, false, false),
		},
		{
			name: a.Get, input: a.getInput(), output: a.getSchema(), run: a.get,
			doc:   fmt.Sprintf("Returns one %s, by name or by identifier. Error code NOT_FOUND if there is none.", a.noun),
			hints: hints(true, false, true),
		},
		{
			name: a.Delete, input: a.deleteInput(), output: a.deleteSchema(), run: a.delete,
			doc:   fmt.Sprintf("Deletes one %s, by identifier. Error code NOT_FOUND if it does not exist.", a.noun),
			hints: hints(false, true, true),
		},
		{
			name: a.List, input: a.listInput(), output: a.listSchema(), run: a.list,
			doc:   fmt.Sprintf("Lists every %s, oldest first.", a.noun),
			hints: hints(true, false, true),
		},
	}
}

func hints(readOnly, destructive, idempotent bool) []mcp.ToolOption {
	return []mcp.ToolOption{
		mcp.WithReadOnlyHintAnnotation(readOnly),
		mcp.WithDestructiveHintAnnotation(destructive),
		mcp.WithIdempotentHintAnnotation(idempotent),
		mcp.WithOpenWorldHintAnnotation(false),
	}
}

// mcpServer builds the MCP server of the application's tools.
func (a *application) mcpServer() *server.MCPServer {
	s := server.NewMCPServer("workspace-"+string(a.Kind), version,
		server.WithToolCapabilities(false),
		server.WithRecovery(),
		server.WithInstructions(a.Summary),
	)
	for _, op := range a.operations() {
		options := append([]mcp.ToolOption{mcp.WithDescription(op.doc), mcp.WithRawOutputSchema(op.output.encode())}, op.hints...)
		tool := mcp.NewToolWithRawSchema(op.name, op.doc, op.input.schema().encode())
		for _, option := range options {
			option(&tool)
		}
		s.AddTool(tool, a.handler(op))
	}
	return s
}

// handler counts the call, then runs the operation with whatever fault is
// armed for it. Once a call has arrived, its client leaving does not stop it.
func (a *application) handler(op operation) server.ToolHandlerFunc {
	return func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx = context.WithoutCancel(ctx)
		ep, fault, armed, err := a.arrive(ctx, op.name)
		if err != nil {
			return nil, err
		}
		run := func() (*mcp.CallToolResult, error) {
			args, err := parseArguments(op.input, request)
			if err != nil {
				return errorResult(codeInvalid, err.Error())
			}
			return op.run(ctx, args)
		}
		if armed {
			a.log.Info("fault strikes", "tool", op.name, "fault", fault.Fault, "ms", fault.MS)
		}
		return a.perform(exchangeFrom(ctx), ep, fault, run)
	}
}

func parseArguments(in input, request mcp.CallToolRequest) (values, error) {
	raw, isRaw := request.GetRawArguments().(json.RawMessage)
	if !isRaw && request.GetRawArguments() != nil {
		return nil, errors.New("arguments must be one JSON object")
	}
	return in.parse(raw)
}

func (a *application) create(ctx context.Context, args values) (*mcp.CallToolResult, error) {
	r, err := a.newResource(args)
	if err != nil {
		return nil, err
	}
	if err := a.store.insert(ctx, r); err != nil {
		return nil, err
	}
	a.log.Info("created", "id", r.ID, "name", r.Name, "owner", r.Owner)
	return result(r)
}

func (a *application) get(ctx context.Context, args values) (*mcp.CallToolResult, error) {
	found, err := a.store.find(ctx, filter{id: args.id(a.App), name: args.text("name"), owner: args.text("owner")})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return a.notFound(args)
	}
	count, err := json.Marshal(len(found))
	if err != nil {
		return nil, err
	}
	raw, err := found[len(found)-1].encode(map[string]json.RawMessage{"count": count})
	if err != nil {
		return nil, err
	}
	return result(json.RawMessage(raw))
}

func (a *application) delete(ctx context.Context, args values) (*mcp.CallToolResult, error) {
	id := args.id(a.App)
	switch err := a.store.remove(ctx, id); {
	case errors.Is(err, errAbsent):
		return a.notFound(args)
	case err != nil:
		return nil, err
	}
	a.log.Info("deleted", "id", id)
	return result(object{"id": id, "deleted": true})
}

// listing is the answer of a list tool and of GET /resources.
type listing struct {
	Items []Resource `json:"items"`
	Count int        `json:"count"`
}

func (a *application) list(ctx context.Context, args values) (*mcp.CallToolResult, error) {
	found, err := a.store.find(ctx, filter{owner: args.text("owner")})
	if err != nil {
		return nil, err
	}
	return result(listing{Items: found, Count: len(found)})
}

func (a *application) notFound(args values) (*mcp.CallToolResult, error) {
	message := fmt.Sprintf("no %s", a.noun)
	if id := args.id(a.App); id != "" {
		message += fmt.Sprintf(" with id %q", id)
	} else {
		message += fmt.Sprintf(" named %q", args.text("name"))
	}
	if owner := args.text("owner"); owner != "" {
		message += fmt.Sprintf(" of owner %q", owner)
	}
	return errorResult(codeNotFound, message)
}

// result answers with a value, structured and as text.
func result(v any) (*mcp.CallToolResult, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(string(raw))},
		StructuredContent: json.RawMessage(raw),
	}, nil
}

func errorResult(code, message string) (*mcp.CallToolResult, error) {
	r, err := result(object{"error": object{"code": code, "message": message}})
	if err != nil {
		return nil, err
	}
	r.IsError = true
	return r, nil
}

package toolclient

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcpx-go/mcpx/contract"
)

// Call is one request for a tool.
type Call struct {
	// ID names the call for Pool.Late, such as "<tx>/<step>/<attempt>". A call without one has no late reply.
	ID string
	// Tool is the tool's name at its server.
	Tool string
	// Args is the arguments object. Its members reach the wire in their order, with every digit of their numbers; only
	// white space between tokens is removed. Empty: the request has no arguments member.
	Args json.RawMessage
	// Meta is added to the request's _meta. Keys should carry a vendor's prefix; those of the protocol are set by the
	// session and win.
	Meta map[string]json.RawMessage
	// WriteDeadline is the moment, by the wall clock, after which nothing of the request is written. A call that has
	// one is a mutation: a stdio server that leaves it unanswered is killed. Zero: none, the call only looks.
	WriteDeadline time.Time
}

// RPCError is a JSON-RPC error answer.
type RPCError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error makes an RPCError usable as an error.
func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// Reply is all that is known about one call. Result, Error and HTTPStatus are what the server said; they may hold
// secrets. Why never does.
type Reply struct {
	// Written is how far the request got. Only contract.NotWritten proves that nothing happened.
	Written contract.Written
	// Result is the reply's result member, byte for byte, whatever it holds. See Complete.
	Result json.RawMessage
	// Error is the reply's error member. With Written other than contract.Answered, it came without an id: an HTTP
	// server said it of this request, but did not read far enough to name it.
	Error *RPCError

	// HTTPStatus is the status of the HTTP response; 0 over stdio, or where none came.
	HTTPStatus int
	// RetryAfter is how long the HTTP server asked us to wait.
	RetryAfter time.Duration

	// Why says in one sentence what is known, or why no more is.
	Why string

	// Sent is when the first byte of the request was written; zero if none was.
	Sent time.Time
	// Received is when the reply, or the HTTP status, came; zero if none did.
	Received time.Time
}

// Complete tells whether the reply holds a final result: an object whose resultType is "complete" or absent. A result
// that asks for input, stands for a task, or is of a type nobody knows is not complete.
func (r Reply) Complete() bool {
	if r.Written != contract.Answered || r.Error != nil {
		return false
	}
	kinds := 0
	complete := true
	err := eachMember(r.Result, func(name string, value json.RawMessage) error {
		if name != "resultType" {
			return nil
		}
		kinds++
		var kind string
		complete = json.Unmarshal(value, &kind) == nil && kind == "complete"
		return nil
	})
	return err == nil && complete && kinds <= 1
}

// Tool is a server's own description of one of its tools. Names, hints and schemas are what the server says, no more.
type Tool struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  json.RawMessage
	// Raw is the whole description, byte for byte.
	Raw json.RawMessage
}

func nothing(format string, args ...any) Reply {
	return Reply{Written: contract.NotWritten, Why: fmt.Sprintf(format, args...)}
}

// strict refuses what two parsers may read differently.
var strict = []jsontext.Options{jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)}

// params are the members of the request's params, or why the call cannot be sent at all.
func (c Call) params() ([]member, error) {
	name, err := jsontext.AppendQuote(nil, c.Tool)
	if err != nil {
		return nil, fmt.Errorf("the tool's name is not valid UTF-8")
	}
	params := []member{{"name", name}}
	if len(c.Args) > 0 {
		args := jsontext.Value(c.Args).Clone()
		if err := args.Compact(strict...); err != nil {
			return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		if args.Kind() != '{' {
			return nil, fmt.Errorf("the arguments are not a JSON object")
		}
		params = append(params, member{"arguments", json.RawMessage(args)})
	}
	return params, nil
}

// meta is the call's own _meta in compact form.
func (c Call) meta() (map[string]json.RawMessage, error) {
	meta := make(map[string]json.RawMessage, len(c.Meta))
	for key, raw := range c.Meta {
		value := jsontext.Value(raw).Clone()
		if err := value.Compact(strict...); err != nil {
			return nil, fmt.Errorf("the _meta member %q is not valid JSON: %w", key, err)
		}
		meta[key] = json.RawMessage(value)
	}
	return meta, nil
}

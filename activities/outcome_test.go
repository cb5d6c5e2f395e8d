package activities_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/activities"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/toolclient"
)

func answered(result string) toolclient.Reply {
	return toolclient.Reply{Written: contract.Answered, Result: json.RawMessage(result)}
}

func rpcError(code int64) toolclient.Reply {
	return toolclient.Reply{Written: contract.Answered, Error: &toolclient.RPCError{Code: code, Message: "no"}}
}

func status(code int, after time.Duration) toolclient.Reply {
	return toolclient.Reply{Written: contract.FullyWritten, HTTPStatus: code, RetryAfter: after}
}

// The table of outcomes: what was written and what came back, and what that tells.
func TestWhatACallTellsUs(t *testing.T) {
	believing := contract.Call{Refuse: `error.code == "QUOTA"`}
	for name, c := range map[string]struct {
		call     contract.Call
		reply    toolclient.Reply
		kind     contract.OutcomeKind
		answered bool
		open     bool
	}{
		"nothing written":                 {reply: toolclient.Reply{Written: contract.NotWritten}, kind: contract.NotExecuted},
		"perhaps written, no reply":       {reply: toolclient.Reply{Written: contract.MaybeWritten}, kind: contract.Unknown},
		"written, no reply":               {reply: toolclient.Reply{Written: contract.FullyWritten}, kind: contract.Unknown},
		"HTTP 200 that breaks off":        {reply: toolclient.Reply{Written: contract.FullyWritten, HTTPStatus: 200}, kind: contract.Unknown},
		"parse error":                     {reply: rpcError(-32700), kind: contract.Refused},
		"invalid request":                 {reply: rpcError(-32600), kind: contract.Refused},
		"unknown method":                  {reply: rpcError(-32601), kind: contract.Refused},
		"invalid params":                  {reply: rpcError(-32602), kind: contract.Refused},
		"internal error proves nothing":   {reply: rpcError(-32603), kind: contract.Unknown, answered: true},
		"request timeout proves nothing":  {reply: rpcError(-32001), kind: contract.Unknown, answered: true},
		"any other code proves nothing":   {reply: rpcError(17), kind: contract.Unknown, answered: true},
		"401":                             {reply: status(401, 0), kind: contract.Refused},
		"403":                             {reply: status(403, 0), kind: contract.Refused},
		"405":                             {reply: status(405, 0), kind: contract.Refused},
		"413":                             {reply: status(413, 0), kind: contract.Refused},
		"429":                             {reply: status(429, time.Second), kind: contract.NotExecuted},
		"503 that says when":              {reply: status(503, time.Second), kind: contract.NotExecuted},
		"503 that does not":               {reply: status(503, 0), kind: contract.Unknown, answered: true},
		"404 in mid-session":              {reply: status(404, 0), kind: contract.Unknown, answered: true},
		"500":                             {reply: status(500, 0), kind: contract.Unknown, answered: true},
		"a redirect is not followed":      {reply: status(307, 0), kind: contract.Unknown, answered: true},
		"acknowledged":                    {reply: answered(`{"content":[]}`), kind: contract.Acknowledged},
		"unknown content is acknowledged": {reply: answered(`{"content":[{"type":"hologram","x":1}]}`), kind: contract.Acknowledged},
		"isError proves nothing":          {reply: answered(`{"isError":true,"content":[{"type":"text","text":"fetch failed"}]}`), kind: contract.Unknown, answered: true},
		"isError that the contract believes": {call: believing, kind: contract.Refused,
			reply: answered(`{"isError":true,"structuredContent":{"error":{"code":"QUOTA","message":"full"}}}`)},
		"isError of another code": {call: believing, kind: contract.Unknown, answered: true,
			reply: answered(`{"isError":true,"structuredContent":{"error":{"code":"OTHER","message":"full"}}}`)},
		"isError without a code": {call: believing, kind: contract.Unknown, answered: true,
			reply: answered(`{"isError":true,"content":[]}`)},
		"isError of a trusted server": {call: contract.Call{TrustRefusals: true}, kind: contract.Refused,
			reply: answered(`{"isError":true,"content":[{"type":"text","text":"no"}]}`)},
		"input required":                 {reply: answered(`{"resultType":"input_required"}`), kind: contract.Unknown, open: true},
		"a task":                         {reply: answered(`{"resultType":"task","taskId":"1"}`), kind: contract.Unknown, open: true},
		"unknown type":                   {reply: answered(`{"resultType":"weird"}`), kind: contract.Unknown, open: true},
		"error with content of no shape": {reply: answered(`{"content":"boom","isError":true}`), kind: contract.Unknown, answered: true},
		"error with odd blocks":          {reply: answered(`{"content":[{"type":1},7],"isError":true}`), kind: contract.Unknown, answered: true},
		"isError that is text":           {reply: answered(`{"content":[],"isError":"true"}`), kind: contract.Unknown, answered: true},
		"isError that is null":           {reply: answered(`{"content":[],"isError":null}`), kind: contract.Unknown, answered: true},
		"isError in another spelling":    {reply: answered(`{"content":[],"iserror":true}`), kind: contract.Acknowledged},
		"content of no shape":            {reply: answered(`{"content":7}`), kind: contract.Acknowledged},
		"429 with a JSON-RPC body": {kind: contract.NotExecuted, reply: toolclient.Reply{
			Written: contract.FullyWritten, HTTPStatus: 429, Error: &toolclient.RPCError{Code: -32000}}},
	} {
		t.Run(name, func(t *testing.T) {
			out := activities.Classify(c.call, c.reply)
			require.Equal(t, c.kind, out.Kind, out.Why)
			require.Equal(t, c.answered, out.Answered)
			require.Equal(t, c.open, out.Open)
			require.Equal(t, c.reply.RetryAfter, out.RetryAfter.Std())
		})
	}
}

func TestAResultIsStructuredContentElseJSONElseText(t *testing.T) {
	for name, c := range map[string]struct{ result, want string }{
		"structured":        {`{"structuredContent":{"id":9007199254740993},"content":[{"type":"text","text":"{\"id\":1}"}]}`, `{"id":9007199254740993}`},
		"text that is JSON": {`{"content":[{"type":"text","text":"{\"id\":18446744073709551616}"}]}`, `{"id":18446744073709551616}`},
		"text":              {`{"content":[{"type":"text","text":"gründe ✓"},{"type":"text","text":"zwei"}]}`, `{"text":"gründe ✓\nzwei"}`},
		"image first":       {`{"content":[{"type":"image","data":"AA"},{"type":"text","text":"[1]"}]}`, `[1]`},
		"nothing":           {`{"content":[]}`, `{"text":""}`},
		"null structured":   {`{"structuredContent":null,"content":[{"type":"text","text":"7"}]}`, `7`},
	} {
		t.Run(name, func(t *testing.T) {
			out := activities.Classify(contract.Call{}, answered(c.result))
			require.Equal(t, contract.Acknowledged, out.Kind)
			require.JSONEq(t, c.want, string(out.Result.Value))
			require.Contains(t, string(out.Result.Value), c.want, "every digit is kept")
		})
	}
}

func TestALargeResultKeepsWhatOthersReferTo(t *testing.T) {
	big := make([]byte, contract.ResultLimit)
	for i := range big {
		big[i] = 'x'
	}
	result := `{"structuredContent":{"id":"r1","blob":"` + string(big) + `"}}`
	out := activities.Classify(contract.Call{Keep: []string{"id"}}, answered(result))
	require.True(t, out.Result.Reduced)
	require.JSONEq(t, `{"id":"r1"}`, string(out.Result.Value))
	require.Greater(t, out.Result.Size, contract.ResultLimit)
	require.Len(t, out.Result.Digest, 64)
}

func TestWhatALookShows(t *testing.T) {
	request := contract.Inspection{
		Tx: contract.TxRef{ID: "tx1"}, Present: `response.owner == tx.id`, Absent: `error.code == "NOT_FOUND"`,
		Map: contract.Template(`{"route_id":"${response.id}"}`), Result: json.RawMessage("null"),
	}
	found := func(owner string) toolclient.Reply {
		return answered(`{"structuredContent":{"id":"r1","owner":"` + owner + `"}}`)
	}
	missing := answered(`{"isError":true,"structuredContent":{"error":{"code":"NOT_FOUND","message":"no such route"}}}`)
	for name, c := range map[string]struct {
		change  func(*contract.Inspection)
		reply   toolclient.Reply
		verdict contract.Verdict
		failed  bool
	}{
		"ours":                           {reply: found("tx1"), verdict: contract.Present},
		"somebody else's":                {reply: found("tx2"), verdict: contract.Inconclusive},
		"absent":                         {reply: missing, verdict: contract.Absent},
		"another error":                  {reply: answered(`{"isError":true,"content":[{"type":"text","text":"not found"}]}`), verdict: contract.Inconclusive, failed: true},
		"a missing field is not absence": {reply: answered(`{"structuredContent":{}}`), verdict: contract.Inconclusive},
		"nothing came":                   {reply: toolclient.Reply{Written: contract.FullyWritten, Why: "reset"}, verdict: contract.Inconclusive, failed: true},
		"HTTP 500":                       {reply: status(500, 0), verdict: contract.Inconclusive, failed: true},
		"a task":                         {reply: answered(`{"resultType":"task"}`), verdict: contract.Inconclusive},
		"both are true": {change: func(r *contract.Inspection) { r.Absent = `response.id == "r1"` },
			reply: found("tx1"), verdict: contract.Inconclusive},
		"present, but without what later steps need": {change: func(r *contract.Inspection) { r.Map = contract.Template(`{"x":"${response.none}"}`) },
			reply: found("tx1"), verdict: contract.Inconclusive},
		"a JSON-RPC error can be absence": {change: func(r *contract.Inspection) { r.Absent = `error.code == "-32002"` },
			reply: rpcError(-32002), verdict: contract.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			r := request
			if c.change != nil {
				c.change(&r)
			}
			look, failed := activities.Judge(r, c.reply)
			require.Equal(t, c.verdict, look.Verdict, look.Why)
			require.Equal(t, c.failed, failed)
			if c.verdict == contract.Present {
				require.JSONEq(t, `{"route_id":"r1"}`, string(look.Result.Value))
			} else {
				require.NotEmpty(t, look.Why)
			}
		})
	}
}

package activities

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/expr"
	"github.com/mcpx-go/mcpx/toolclient"
)

// Error codes by which a server says that it did not even begin: JSON-RPC 2.0 section 5.1 (parse error, invalid
// request, method not found, invalid params), and those of MCP 2026-07-28 for requests that it cannot take (header
// mismatch, missing client capability, unsupported protocol version).
var refusedCodes = map[int64]bool{
	-32700: true, -32600: true, -32601: true, -32602: true,
	-32020: true, -32021: true, -32022: true,
}

// resultLimit bounds what one outcome may put into the history, referenced paths included.
const resultLimit = 1 << 20

// Classify says what a mutating call told us. What was written decides between not executed and unknown; an error
// answer is a refusal only where the protocol or the contract says so, because the common SDKs turn every exception,
// one after the commit included, into an error answer.
func Classify(call contract.Call, reply toolclient.Reply) contract.Outcome {
	switch {
	case reply.Written == contract.NotWritten:
		return contract.Outcome{Kind: contract.NotExecuted, Why: reply.Why, RetryAfter: contract.Duration(reply.RetryAfter)}
	case busy(reply):
		return contract.Outcome{Kind: contract.NotExecuted, Why: statusText(reply), RetryAfter: contract.Duration(reply.RetryAfter)}
	case reply.Error != nil:
		e := read(reply).err
		return classifyError(call, e, refusedCodes[reply.Error.Code], fmt.Sprintf("error %s: %s", e.Code, head(e.Message)))
	case len(reply.Result) == 0 && reply.HTTPStatus >= 300:
		e := &contract.ToolError{Code: strconv.Itoa(reply.HTTPStatus), Message: statusText(reply)}
		return classifyError(contract.Call{}, e, refusedStatuses[reply.HTTPStatus], e.Message)
	case len(reply.Result) == 0:
		return contract.Outcome{Kind: contract.Unknown, Why: reply.Why}
	case !reply.Complete():
		return contract.Outcome{Kind: contract.Unknown, Open: true,
			Why: "the answer is no final result (" + resultType(reply.Result) + ")"}
	}
	a := read(reply)
	switch {
	case a.odd != "":
		return contract.Outcome{Kind: contract.Unknown, Answered: true, Why: a.odd}
	case a.err != nil:
		why := head(a.err.Message)
		if a.err.Code != "" {
			why = a.err.Code + ": " + why
		}
		return classifyError(call, a.err, false, why)
	}
	kept := contract.Keep(a.response, call.Keep, contract.ResultLimit)
	if kept != nil && len(kept.Value) > resultLimit {
		kept.Value, kept.Reduced = nil, true
	}
	return contract.Outcome{Kind: contract.Acknowledged, Result: kept}
}

// classifyError judges an error answer: a refusal where the protocol makes it certain or the contract believes it, else
// unknown, and so to be inspected.
func classifyError(call contract.Call, e *contract.ToolError, certain bool, why string) contract.Outcome {
	switch {
	case certain || believed(call, e):
		return contract.Outcome{Kind: contract.Refused, Why: why, Error: e}
	case call.TrustRefusals:
		return contract.Outcome{Kind: contract.Refused, Why: why, Error: e, Unverified: true}
	}
	return contract.Outcome{Kind: contract.Unknown, Answered: true, Error: e, Why: "an error answer that proves nothing: " + why}
}

// believed tells whether the contract's own condition believes this error answer.
func believed(call contract.Call, e *contract.ToolError) bool {
	if call.Refuse == "" {
		return false
	}
	condition, err := expr.Cached(expr.Refuse, call.Refuse)
	if err != nil {
		return false
	}
	return condition.True(expr.Vars{Error: e, Args: call.Args, Tx: call.Tx.ID})
}

// refusedStatuses are the HTTP statuses by which a server says that it did not let the request in.
var refusedStatuses = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true,
	http.StatusMethodNotAllowed: true, http.StatusRequestEntityTooLarge: true,
}

// busy tells whether a server said, by its HTTP status, that it has not taken the request and when to come again.
func busy(reply toolclient.Reply) bool {
	return reply.HTTPStatus == http.StatusTooManyRequests ||
		reply.HTTPStatus == http.StatusServiceUnavailable && reply.RetryAfter > 0
}

func statusText(reply toolclient.Reply) string {
	return fmt.Sprintf("HTTP %d %s", reply.HTTPStatus, http.StatusText(reply.HTTPStatus))
}

// Judge says what a look showed. failed: the inspector itself failed, and may be asked again.
func Judge(request contract.Inspection, reply toolclient.Reply) (look contract.Look, failed bool) {
	inconclusive := func(why string, args ...any) contract.Look {
		return contract.Look{Verdict: contract.Inconclusive, Why: fmt.Sprintf(why, args...)}
	}
	if reply.Error == nil && len(reply.Result) == 0 {
		if reply.HTTPStatus >= 300 {
			return inconclusive("HTTP %d: %s", reply.HTTPStatus, reply.Why), true
		}
		return inconclusive("%s", reply.Why), true
	}
	if len(reply.Result) > 0 && !reply.Complete() {
		return inconclusive("the answer is no final result (%s)", resultType(reply.Result)), false
	}
	a := read(reply)
	if a.odd != "" {
		return inconclusive("%s", a.odd), false
	}
	vars := expr.Vars{Response: a.response, Error: a.err, Args: request.Args, Tx: request.Tx.ID}
	if string(request.Result) != "null" {
		vars.Result = request.Result
	}
	present, presentProblem := evaluate(expr.Present, request.Present, vars)
	absent, absentProblem := evaluate(expr.Absent, request.Absent, vars)
	switch {
	case present && absent:
		return inconclusive("both present and absent are true"), false
	case present:
		result, err := mapped(request, a.response)
		if err != nil {
			return inconclusive("it is there, but what it hands to later steps cannot be read: %v", err), false
		}
		return contract.Look{Verdict: contract.Present, Why: request.Present, Result: result}, false
	case absent:
		return contract.Look{Verdict: contract.Absent, Why: request.Absent}, false
	case a.err != nil:
		return inconclusive("error answer %s: %s", a.err.Code, head(a.err.Message)), true
	}
	return inconclusive("neither present (%s) nor absent (%s)", presentProblem, absentProblem), false
}

// evaluate tells whether a condition is true, and if not, why not. One that cannot be evaluated is not true.
func evaluate(kind expr.Kind, source string, vars expr.Vars) (bool, string) {
	if source == "" {
		return false, "no condition"
	}
	condition, err := expr.Cached(kind, source)
	if err != nil {
		return false, err.Error()
	}
	truth, problem := condition.Eval(vars)
	if problem == "" {
		problem = source + " is false"
	}
	return truth, problem
}

// mapped is what a recovered step hands to later steps.
func mapped(request contract.Inspection, response json.RawMessage) (*contract.Kept, error) {
	value := response
	if len(request.Map) > 0 {
		filled, err := request.Map.Fill(contract.Scope{
			"response": response, "args": request.Args, "tx": txVar(request.Tx),
		})
		if err != nil {
			return nil, err
		}
		value = filled
	}
	return contract.Keep(value, request.Keep, contract.ResultLimit), nil
}

// txVar is what conditions and templates know as tx.
func txVar(tx contract.TxRef) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"id": tx.ID}) // text always encodes
	return raw
}

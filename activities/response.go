package activities

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/toolclient"
)

// metaPrefix is MCPx's own prefix in the _meta of a request.
const metaPrefix = "dev.mcpx/"

// meta tells an owner that wants to know which transaction calls.
func meta(tx contract.TxRef, step string, attempt int) map[string]json.RawMessage {
	quote := func(s string) json.RawMessage {
		raw, _ := json.Marshal(s) // text always encodes
		return raw
	}
	return map[string]json.RawMessage{
		metaPrefix + "tx":      quote(tx.ID),
		metaPrefix + "step":    quote(step),
		metaPrefix + "attempt": json.RawMessage(strconv.Itoa(attempt)),
	}
}

// answer is a tool's answer as conditions and templates see it: a response, or an error. odd says why it is neither.
type answer struct {
	response json.RawMessage
	err      *contract.ToolError
	odd      string
}

// read makes response or error of a reply that was answered. The members of an MCP tool result (2026-07-28,
// server/tools) are read by their exact names and each for itself: a content block that nobody can read must not decide
// whether the call succeeded.
func read(reply toolclient.Reply) answer {
	if reply.Error != nil {
		return answer{err: &contract.ToolError{Code: strconv.FormatInt(reply.Error.Code, 10), Message: reply.Error.Message}}
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		return answer{odd: "the result is not an object"}
	}
	response := result["structuredContent"]
	if len(response) == 0 || string(response) == "null" {
		response = textOf(result["content"])
	}
	switch flag := string(result["isError"]); flag {
	case "", "false":
		return answer{response: response}
	case "true":
		return answer{err: errorOf(response)}
	default:
		return answer{odd: "isError is neither true nor false: " + head(flag)}
	}
}

// textOf is the first text block parsed as JSON, else {"text": …} with all text. Blocks of other types do not matter.
func textOf(content json.RawMessage) json.RawMessage {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil {
		blocks = []json.RawMessage{content}
	}
	var texts []string
	for _, raw := range blocks {
		var block map[string]json.RawMessage
		var kind, text string
		if json.Unmarshal(raw, &block) != nil || json.Unmarshal(block["type"], &kind) != nil || kind != "text" ||
			json.Unmarshal(block["text"], &text) != nil {
			continue
		}
		if trimmed := strings.TrimSpace(text); len(texts) == 0 && trimmed != "" && json.Valid([]byte(trimmed)) {
			return json.RawMessage(trimmed)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 && len(blocks) == 1 {
		// Content that is no list of blocks: some servers answer with bare text.
		var text string
		if json.Unmarshal(blocks[0], &text) == nil {
			texts = append(texts, text)
		}
	}
	raw, _ := json.Marshal(map[string]string{"text": strings.Join(texts, "\n")}) // text always encodes
	return raw
}

// errorOf makes {code, message} of an isError answer: its member error, or its own members code and message, or its
// text. A code that is a number is kept by its spelling.
func errorOf(response json.RawMessage) *contract.ToolError {
	type fields struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
		Text    *string         `json:"text"`
	}
	var outer fields
	if json.Unmarshal(response, &outer) != nil {
		return &contract.ToolError{Message: plain(response)}
	}
	inner := outer
	if len(outer.Error) > 0 {
		inner = fields{}
		if json.Unmarshal(outer.Error, &inner) != nil {
			return &contract.ToolError{Code: plain(outer.Code), Message: plain(outer.Error)}
		}
	}
	e := &contract.ToolError{Code: plain(inner.Code), Message: plain(inner.Message)}
	switch {
	case e.Message == "" && outer.Text != nil:
		e.Message = *outer.Text
	case e.Message == "":
		e.Message = string(response)
	}
	return e
}

// resultType is what a result says that it is: a request for input, a task, or something nobody knows.
func resultType(result json.RawMessage) string {
	var typed struct {
		ResultType json.RawMessage `json:"resultType"`
	}
	if json.Unmarshal(result, &typed) != nil || len(typed.ResultType) == 0 {
		return "of unknown shape"
	}
	return "resultType " + head(plain(typed.ResultType))
}

// plain is a JSON string's text, or any other value's spelling; "" for null and nothing.
func plain(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// head is the beginning of a text, for evidence.
func head(text string) string {
	const limit = 300
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

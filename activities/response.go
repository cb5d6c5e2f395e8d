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

// answer is a tool's answer as conditions and templates see it: a response, or an error.
type answer struct {
	response json.RawMessage
	err      *contract.ToolError
}

// toolResult is the part of an MCP tool result (2026-07-28, server/tools) that says what happened. Content blocks of
// unknown types do not matter here.
type toolResult struct {
	Content []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

// read makes response or error of a reply that was answered.
func read(reply toolclient.Reply) answer {
	if reply.Error != nil {
		return answer{err: &contract.ToolError{Code: strconv.FormatInt(reply.Error.Code, 10), Message: reply.Error.Message}}
	}
	var result toolResult
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		// A result of another shape is an answer all the same.
		return answer{response: reply.Result}
	}
	response := result.StructuredContent
	if len(response) == 0 || string(response) == "null" {
		response = textOf(result)
	}
	if result.IsError {
		return answer{err: errorOf(response)}
	}
	return answer{response: response}
}

// textOf is the first text block parsed as JSON, else {"text": …} with all text.
func textOf(result toolResult) json.RawMessage {
	var texts []string
	for _, block := range result.Content {
		var text string
		if block.Type != "text" || json.Unmarshal(block.Text, &text) != nil {
			continue
		}
		if len(texts) == 0 {
			if trimmed := strings.TrimSpace(text); trimmed != "" && json.Valid([]byte(trimmed)) {
				return json.RawMessage(trimmed)
			}
		}
		texts = append(texts, text)
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

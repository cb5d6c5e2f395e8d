package toolclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// member is one member of a params object.
type member struct {
	name  string
	value json.RawMessage
}

// encodeParams writes the members and, if there is any, the _meta. Nil when there is neither.
func encodeParams(params []member, meta map[string]json.RawMessage) []byte {
	if len(params) == 0 && len(meta) == 0 {
		return nil
	}
	b := []byte{'{'}
	for _, m := range params {
		b = appendMember(b, m.name, m.value)
	}
	if len(meta) > 0 {
		inner := []byte{'{'}
		for _, key := range slices.Sorted(maps.Keys(meta)) {
			inner = appendMember(inner, key, meta[key])
		}
		b = appendMember(b, "_meta", append(inner, '}'))
	}
	return append(b, '}')
}

func appendMember(b []byte, name string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b, _ = jsontext.AppendQuote(b, name) // an ill-formed name is repaired; only values carry exact data
	b = append(b, ':')
	return append(b, value...)
}

// encodeRequest writes a JSON-RPC request; without id (0), a notification.
func encodeRequest(id int64, method string, params []byte) []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if id != 0 {
		b = append(b, `,"id":`...)
		b = strconv.AppendInt(b, id, 10)
	}
	b = append(b, `,"method":`...)
	b, _ = jsontext.AppendQuote(b, method)
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// encodeResponse answers a request of the server's. We offer no capability, so only ping has an answer.
func encodeResponse(request message) []byte {
	b := []byte(`{"jsonrpc":"2.0","id":`)
	b = append(b, request.id...)
	if request.method == "ping" {
		return append(b, `,"result":{}}`...)
	}
	return append(b, `,"error":{"code":-32601,"message":"Method not found: this client offers no capabilities"}}`...)
}

// message is one JSON-RPC message from a server. Its members are read by their exact names.
type message struct {
	id     json.RawMessage // nil where absent or null
	method string
	result json.RawMessage // nil where absent, or null beside an error
	err    *RPCError
}

// isReply tells a reply from a request or a notification.
func (m message) isReply() bool { return m.method == "" }

// answers tells whether the message is the reply to the request with that id. Ids are small integers here, so that a
// server that writes them as 7.0 is still understood.
func (m message) answers(id int64) bool {
	if !m.isReply() || m.id == nil {
		return false
	}
	got, ok := m.number()
	return ok && got == id
}

// number is the message's id as an integer of ours.
func (m message) number() (int64, bool) {
	if id, err := strconv.ParseInt(string(m.id), 10, 64); err == nil {
		return id, true
	}
	if len(m.id) == 0 || m.id[0] == '"' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(m.id), 64)
	if err != nil || f != float64(int64(f)) || f <= 0 || f >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

var (
	errAmbiguous = errors.New("a member appears twice")
	errNotReply  = errors.New("neither a result nor an error")
	errBoth      = errors.New("both a result and an error")
)

// parseMessages reads one message, or a batch of them (allowed until revision 2025-03-26). White space around is fine.
func parseMessages(text []byte) ([]message, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '[' {
		m, err := parseMessage(text)
		if err != nil {
			return nil, err
		}
		return []message{m}, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	messages := make([]message, 0, len(parts))
	for _, part := range parts {
		m, err := parseMessage(part)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func parseMessage(text []byte) (message, error) {
	var m message
	var hasResult, hasError, hasMethod bool
	seen := map[string]bool{}
	err := eachMember(text, func(name string, value json.RawMessage) error {
		switch name {
		case "id", "method", "result", "error":
			if seen[name] {
				return fmt.Errorf("%w: %s", errAmbiguous, name)
			}
			seen[name] = true
		}
		null := string(value) == "null"
		switch name {
		case "id":
			if !null {
				m.id = value
			}
		case "method":
			hasMethod = true
			return json.Unmarshal(value, &m.method)
		case "result":
			hasResult, m.result = true, value
		case "error":
			if !null {
				hasError, m.err = true, parseError(value)
			}
		}
		return nil
	})
	if err != nil {
		return message{}, err
	}
	if hasError && string(m.result) == "null" {
		hasResult, m.result = false, nil
	}
	switch {
	case hasMethod && m.method == "":
		return message{}, errors.New("an empty method")
	case hasMethod:
		return m, nil
	case hasResult && hasError:
		return message{}, errBoth
	case !hasResult && !hasError:
		return message{}, errNotReply
	}
	return m, nil
}

// parseError reads an error member leniently: whatever it holds, it is an error.
func parseError(raw json.RawMessage) *RPCError {
	e := &RPCError{}
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "code":
			if code, err := strconv.ParseInt(string(value), 10, 64); err == nil {
				e.Code = code
			} else if f, err := strconv.ParseFloat(string(value), 64); err == nil && f == float64(int64(f)) {
				e.Code = int64(f)
			}
		case "message":
			_ = json.Unmarshal(value, &e.Message)
		case "data":
			e.Data = value
		}
		return nil
	})
	if err != nil { // not an object: some servers send a bare text
		e.Data = raw
		_ = json.Unmarshal(raw, &e.Message)
	}
	return e
}

// eachMember visits the members of a JSON object in their order, by their exact names. Values are parts of text. What
// lies inside of them is not judged beyond its syntax.
func eachMember(text []byte, visit func(name string, value json.RawMessage) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	start, err := dec.ReadToken()
	if err != nil {
		return unexpectedEnd(err)
	}
	if start.Kind() != '{' {
		return errors.New("not a JSON object")
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return unexpectedEnd(err)
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return unexpectedEnd(err)
		}
		end := dec.InputOffset()
		if err := visit(name, text[end-int64(len(value)):end:end]); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return unexpectedEnd(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends in the middle of the JSON")
	}
	return errors.New("it is not JSON")
}

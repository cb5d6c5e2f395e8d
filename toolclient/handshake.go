package toolclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// protocol is what a session has agreed on with its server.
type protocol struct {
	version string
	modern  bool // 2026-07-28 and later: no handshake, every request describes itself
}

// ClientInfo names this program to the servers.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// meta adds to a request's own _meta what the protocol wants there.
func (p protocol) meta(own map[string]json.RawMessage, info ClientInfo) map[string]json.RawMessage {
	if !p.modern {
		return own
	}
	all := make(map[string]json.RawMessage, len(own)+3)
	for k, v := range own {
		all[k] = v
	}
	all[mcp.MetaKeyProtocolVersion] = mustJSON(p.version)
	all[mcp.MetaKeyClientCapabilities] = json.RawMessage(`{}`)
	all[mcp.MetaKeyClientInfo] = mustJSON(info)
	return all
}

func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and structs of strings always encode
	}
	return text
}

// link carries requests that change nothing: they may be asked before a session stands.
type link interface {
	// ask sends a request and returns the reply, which may be an error answer. The error is a *connectError.
	ask(ctx context.Context, p protocol, method string, params ...member) (message, error)
	// tell sends a notification.
	tell(ctx context.Context, p protocol, method string) error
}

// connectError says why a server could not be asked. Its text holds no secrets.
type connectError struct {
	why        string
	status     int           // the HTTP status, if that was the answer
	retryAfter time.Duration // what the server asked for
	down       bool          // there is nobody to ask: another question would fail as well
}

func (e *connectError) Error() string { return e.why }

func failed(format string, args ...any) *connectError {
	return &connectError{why: fmt.Sprintf(format, args...)}
}

// final tells an answer that asking in another era would not change.
func (e *connectError) final() bool {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return e.down
}

// The errors by which a modern server is recognised.
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// errLegacy says that the server did not understand the modern probe.
var errLegacy = errors.New("not a modern server")

// handshake finds out the era of a server and opens a session in it.
type handshake struct {
	link        link
	info        ClientInfo
	probe       time.Duration // how long server/discover may take
	legacyFirst bool          // it was a legacy server when last seen
}

func (h handshake) open(ctx context.Context) (protocol, error) {
	if h.legacyFirst {
		p, err := h.initialize(ctx)
		if err == nil || isFinal(err) || ctx.Err() != nil {
			return p, err
		}
		probe, cancel := context.WithTimeout(ctx, h.probe)
		defer cancel()
		if modern, again := h.discover(probe); again == nil {
			return modern, nil
		}
		return p, err
	}
	return h.openProbing(ctx)
}

// openProbing asks as 2026-07-28 does, and shakes hands where that is not understood. A server that is silent for long
// is asked both: one that was only slow to start may still turn out to be modern.
func (h handshake) openProbing(ctx context.Context) (protocol, error) {
	type outcome struct {
		p   protocol
		err error
	}
	probe, cancel := context.WithCancel(ctx)
	found := make(chan outcome, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		p, err := h.discover(probe)
		found <- outcome{p, err}
	})
	defer asking.Wait()
	defer cancel()

	timer := time.NewTimer(h.probe)
	defer timer.Stop()
	select {
	case f := <-found:
		if errors.Is(f.err, errLegacy) {
			return h.initialize(ctx)
		}
		return f.p, f.err
	case <-timer.C:
	}
	p, err := h.initialize(ctx)
	if err == nil || ctx.Err() != nil {
		return p, err
	}
	timer.Reset(h.probe)
	select {
	case f := <-found:
		if f.err == nil {
			return f.p, nil
		}
	case <-timer.C:
	}
	return p, err
}

func isFinal(err error) bool {
	var ce *connectError
	return errors.As(err, &ce) && ce.final()
}

// discover asks as 2026-07-28 does. What is not recognised as a modern answer is errLegacy.
func (h handshake) discover(ctx context.Context) (protocol, error) {
	p := protocol{version: mcp.ProtocolVersion20260728, modern: true}
	reply, err := h.link.ask(ctx, p, string(mcp.MethodServerDiscover))
	if err != nil {
		if isFinal(err) || ctx.Err() != nil {
			return protocol{}, err
		}
		return protocol{}, errLegacy
	}
	if reply.err != nil {
		switch reply.err.Code {
		case codeUnsupportedVersion:
			var data struct {
				Supported []string `json:"supported"`
			}
			_ = json.Unmarshal(reply.err.Data, &data)
			return h.choose(data.Supported)
		case codeHeaderMismatch, codeMissingCapability:
			return protocol{}, failed("the server refuses server/discover with error %d", reply.err.Code)
		}
		return protocol{}, errLegacy
	}
	var result struct {
		Supported []string `json:"supportedVersions"`
	}
	if json.Unmarshal(reply.result, &result) != nil || len(result.Supported) == 0 {
		return protocol{}, errLegacy
	}
	return h.choose(result.Supported)
}

func (h handshake) choose(supported []string) (protocol, error) {
	version := mcp.NegotiateMutuallySupportedVersion(supported)
	switch {
	case version == "":
		return protocol{}, failed("the server speaks only the protocol versions %s, and this client none of them",
			strings.Join(head(supported, 8), ", "))
	case mcp.IsModernProtocol(version):
		return protocol{version: version, modern: true}, nil
	}
	return protocol{}, errLegacy
}

// initialize opens a session of the handshake era.
func (h handshake) initialize(ctx context.Context) (protocol, error) {
	p := protocol{version: mcp.LATEST_LEGACY_PROTOCOL_VERSION}
	reply, err := h.link.ask(ctx, protocol{}, string(mcp.MethodInitialize),
		member{"protocolVersion", mustJSON(p.version)},
		member{"capabilities", json.RawMessage(`{}`)},
		member{"clientInfo", mustJSON(h.info)})
	if err != nil {
		return protocol{}, err
	}
	if reply.err != nil {
		return protocol{}, failed("the server refuses the handshake with error %d", reply.err.Code)
	}
	var result struct {
		Version string `json:"protocolVersion"`
	}
	if json.Unmarshal(reply.result, &result) != nil || result.Version == "" {
		return protocol{}, failed("the server's answer to the handshake names no protocol version")
	}
	if !mcp.IsValidProtocolVersion(result.Version) || mcp.IsModernProtocol(result.Version) {
		return protocol{}, failed("the server answers the handshake with protocol version %.20q, which this client does not speak", result.Version)
	}
	p.version = result.Version
	if err := h.link.tell(ctx, p, "notifications/initialized"); err != nil {
		return protocol{}, err
	}
	return p, nil
}

func head(list []string, n int) []string {
	if len(list) > n {
		return append(list[:n:n], "…")
	}
	return list
}

// listTools reads every page of tools/list.
func listTools(ctx context.Context, l link, p protocol) ([]Tool, error) {
	const maxPages = 1000
	var tools []Tool
	var params []member
	seen := map[string]bool{}
	for range maxPages {
		reply, err := l.ask(ctx, p, string(mcp.MethodToolsList), params...)
		if err != nil {
			return nil, err
		}
		if reply.err != nil {
			return nil, reply.err
		}
		var page []json.RawMessage
		cursor := ""
		err = eachMember(reply.result, func(name string, value json.RawMessage) error {
			switch name {
			case "tools":
				return json.Unmarshal(value, &page)
			case "nextCursor":
				return json.Unmarshal(value, &cursor)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("the list of tools cannot be read: %w", err)
		}
		for _, raw := range page {
			tool, err := parseTool(raw)
			if err != nil {
				return nil, fmt.Errorf("the list of tools holds a tool that cannot be read: %w", err)
			}
			tools = append(tools, tool)
		}
		if cursor == "" {
			return tools, nil
		}
		if seen[cursor] {
			return nil, errors.New("the list of tools has no end: the server repeats a cursor")
		}
		seen[cursor] = true
		params = []member{{"cursor", mustJSON(cursor)}}
	}
	return nil, fmt.Errorf("the list of tools has more than %d pages", maxPages)
}

func parseTool(raw json.RawMessage) (Tool, error) {
	t := Tool{Raw: raw}
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "name":
			return json.Unmarshal(value, &t.Name)
		case "title":
			return json.Unmarshal(value, &t.Title)
		case "description":
			return json.Unmarshal(value, &t.Description)
		case "inputSchema":
			t.InputSchema = value
		case "outputSchema":
			t.OutputSchema = value
		case "annotations":
			t.Annotations = value
		}
		return nil
	})
	if err == nil && t.Name == "" {
		err = errors.New("it has no name")
	}
	return t, err
}

package toolclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// outgoing is one HTTP request.
type outgoing struct {
	verb string // POST where empty
	p    protocol
	rpc  string // the JSON-RPC method
	tool string
	id   int64 // of the JSON-RPC request; 0: a notification or a response
	body []byte
	more map[string]string // headers
	gate *gate
}

// send makes one HTTP request, exactly once. It tells whether the connection had been used before.
func (s *httpSession) send(ctx context.Context, out outgoing) (resp *http.Response, reused bool, err error) {
	verb := out.verb
	if verb == "" {
		verb = http.MethodPost
	}
	var wasReused atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			wasReused.Store(info.Reused)
			carry(info.Conn, out.gate)
		},
	})
	req, err := http.NewRequestWithContext(ctx, verb, s.o.url.String(), nil)
	if err != nil {
		return nil, false, errors.New("the request cannot be made")
	}
	if out.body != nil {
		// Without GetBody, net/http cannot send the request again by itself.
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(out.body)), int64(len(out.body))
	}
	if out.gate != nil {
		out.gate.body = len(out.body)
	}
	req.Header = s.headers(out)
	resp, err = s.transport.RoundTrip(req)
	if err != nil {
		return nil, wasReused.Load(), errors.New(s.scrub.Replace(err.Error()))
	}
	s.used()
	return resp, wasReused.Load(), nil
}

func (s *httpSession) headers(out outgoing) http.Header {
	h := s.header.Clone()
	h.Set("Accept", "application/json, text/event-stream")
	if out.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if out.p.version != "" {
		h.Set(mcp.HeaderProtocolVersion, out.p.version)
	}
	if out.p.modern {
		h.Set(mcp.HeaderMethod, out.rpc)
		if name, ok := mcp.EncodeHeaderValue(out.tool); ok && out.tool != "" {
			h.Set(mcp.HeaderName, name)
		}
	} else if id := s.sessionID(); id != "" && out.rpc != string(mcp.MethodInitialize) {
		h.Set(mcp.HeaderSessionID, id)
	}
	for name, value := range out.more {
		h.Set(name, value)
	}
	return h
}

// ask is link's.
func (s *httpSession) ask(ctx context.Context, p protocol, method string, params ...member) (message, error) {
	id := s.o.pool.nextID()
	g := newGate(ctx, time.Time{}, s.o.pool.now)
	out := outgoing{
		p: p, rpc: method, id: id, gate: g,
		body: encodeRequest(id, method, encodeParams(params, p.meta(nil, s.o.pool.options.ClientInfo))),
	}
	in, _, err := s.fetch(ctx, out)
	if err != nil {
		s.losses.Add(1)
		down := g.shutUnused(errGone)
		if down && ctx.Err() == nil {
			s.lose(err.Error())
		}
		return message{}, &connectError{why: fmt.Sprintf("%s could not be asked for %s: %s", s.o.ref.Name, method, err), down: down}
	}
	if !s.background(in.finish) {
		in.finish()
	}
	if in.reply == nil {
		s.judge(in)
		return message{}, &connectError{
			why:    fmt.Sprintf("%s gave no answer to %s: %s", s.o.ref.Name, method, in.why),
			status: in.status, retryAfter: in.retryAfter,
		}
	}
	if method == string(mcp.MethodInitialize) && in.reply.err == nil {
		s.mu.Lock()
		s.id = in.sessionID
		s.mu.Unlock()
	}
	return *in.reply, nil
}

// tell is link's.
func (s *httpSession) tell(ctx context.Context, p protocol, method string) error {
	return s.post(ctx, outgoing{p: p, rpc: method, body: encodeRequest(0, method, nil)})
}

// post sends what has no reply.
func (s *httpSession) post(ctx context.Context, out outgoing) error {
	resp, _, err := s.send(ctx, out)
	if err != nil {
		return failed("%s could not be told %s: %s", s.o.ref.Name, out.rpc, err)
	}
	s.finish(resp)
	if resp.StatusCode/100 != 2 {
		return &connectError{
			why:    fmt.Sprintf("%s did not accept %s: %s", s.o.ref.Name, out.rpc, statusText(resp.StatusCode)),
			status: resp.StatusCode, retryAfter: retryAfter(resp, s.o.pool.now()),
		}
	}
	return nil
}

// fetch sends a request and reads the answer to it.
func (s *httpSession) fetch(ctx context.Context, out outgoing) (in incoming, reused bool, err error) {
	resp, reused, err := s.send(ctx, out)
	if err == nil {
		in = s.receive(ctx, resp, out)
	}
	if in.reply == nil {
		out.gate.awaitWhole()
	}
	return in, reused, err
}

// mirror makes the headers for the arguments of a call that the server wants there.
func (s *httpSession) mirror(tool string, params json.RawMessage) map[string]string {
	if t := s.mirrored[tool]; t != nil {
		return mcp.GenerateParamHeaders(t, params)
	}
	return nil
}

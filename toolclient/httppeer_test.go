//go:build unix

package toolclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// httpPeer is an HTTP server on a raw listener. It shakes hands like a server of its era, and does what the test says
// with each tools/call.
type httpPeer struct {
	t      *testing.T
	era    string // modern, legacy, stateless (a legacy server without sessions)
	ln     net.Listener
	url    string
	onCall func(x *exchangeAt)

	closeAfterHandshake bool // the handshake's connections are not used again
	ignorePing          bool
	onAccept            func(c net.Conn) bool

	calls    atomic.Int64 // tools/call requests that were read to their end
	partial  atomic.Int64 // requests that ended before they were whole
	sessions atomic.Int64
	mu       sync.Mutex
	methods  []string
	heads    []http.Header // of the calls
	posted   []string      // answers to our own requests
	conns    map[net.Conn]bool
	work     sync.WaitGroup
}

// exchangeAt is one tools/call as the peer sees it.
type exchangeAt struct {
	net.Conn
	r    *bufio.Reader
	req  *http.Request
	id   string
	body []byte
	n    int64 // the number of the call
}

func newHTTPPeer(t *testing.T, era string, onCall func(x *exchangeAt), settings ...func(*httpPeer)) *httpPeer {
	t.Helper()
	p := &httpPeer{t: t, era: era, onCall: onCall}
	for _, set := range settings {
		set(p)
	}
	p.listen("127.0.0.1:0")
	t.Cleanup(p.stop)
	return p
}

// afterHandshake makes onConn serve the connections that follow the handshake, instead of the peer. They take little at
// a time.
func afterHandshake(onConn func(c net.Conn)) func(*httpPeer) {
	return func(p *httpPeer) {
		p.closeAfterHandshake = true
		var accepted atomic.Int64
		p.onAccept = func(c net.Conn) bool {
			if accepted.Add(1) <= 2 {
				return true
			}
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			onConn(c)
			return false
		}
	}
}

// pause is when a peer stops reading in the middle of the one request that follows the handshake.
type pause struct {
	begun chan struct{} // closed when the request has begun
	read  chan struct{} // the peer reads on when it is closed
	whole chan bool     // whether the request arrived to its end
}

func newStalledPeer(t *testing.T) (*httpPeer, pause) {
	t.Helper()
	s := pause{make(chan struct{}), make(chan struct{}), make(chan bool, 1)}
	return newHTTPPeer(t, "modern", nil, afterHandshake(func(c net.Conn) {
		r := bufio.NewReader(c)
		_, _ = r.Peek(1)
		close(s.begun)
		<-s.read
		req, err := http.ReadRequest(r)
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		s.whole <- err == nil
	})), s
}

func (p *httpPeer) listen(addr string) {
	ln, err := net.Listen("tcp", addr)
	require.NoError(p.t, err)
	p.ln, p.conns = ln, map[net.Conn]bool{}
	p.url = "http://" + ln.Addr().String() + "/mcp"
	p.work.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns[c] = true
			p.mu.Unlock()
			p.work.Go(func() {
				if p.onAccept == nil || p.onAccept(c) {
					p.serve(c)
				}
				_ = c.Close()
			})
		}
	})
}

// stop closes the port and every connection.
func (p *httpPeer) stop() {
	_ = p.ln.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *httpPeer) server() contract.Server {
	return contract.Server{Name: "peer", HTTP: &contract.HTTPServer{URL: p.url}}
}

func (p *httpPeer) ref() contract.ServerRef { return p.server().Ref() }

func (p *httpPeer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			p.partial.Add(1)
			return
		}
		if !p.answer(c, r, req, body) {
			return
		}
	}
}

func (p *httpPeer) answer(c net.Conn, r *bufio.Reader, req *http.Request, body []byte) bool {
	var m request
	if len(body) > 0 {
		require.NoError(p.t, json.Unmarshal(body, &m))
	}
	p.mu.Lock()
	p.methods = append(p.methods, strings.TrimSpace(req.Method+" "+m.Method))
	p.mu.Unlock()
	x := &exchangeAt{Conn: c, r: r, req: req, id: string(m.ID), body: body}
	known := p.era != "legacy" || req.Header.Get("Mcp-Session-Id") == fmt.Sprintf("session-%d", p.sessions.Load())
	switch {
	case m.Method == "server/discover" && p.era == "modern":
		x.json(200, p.tail(), `{"jsonrpc":"2.0","id":`+x.id+`,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`)
	case m.Method == "initialize" && p.era != "modern":
		session := ""
		if p.era == "legacy" {
			session = fmt.Sprintf("Mcp-Session-Id: session-%d\r\n", p.sessions.Add(1))
		}
		x.json(200, session+p.tail(), `{"jsonrpc":"2.0","id":`+x.id+`,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	case m.Method == "server/discover":
		x.json(400, p.tail(), `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`)
	case req.Method == http.MethodGet && p.onCall != nil:
		p.onCall(x)
	case !known:
		x.json(404, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
	case m.Method == "":
		if req.Method == http.MethodPost {
			p.mu.Lock()
			p.posted = append(p.posted, string(body))
			p.mu.Unlock()
		}
		x.write("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
	case m.ID == nil:
		x.write("HTTP/1.1 202 Accepted\r\n" + p.tail() + "Content-Length: 0\r\n\r\n")
	case m.Method == "tools/list":
		x.json(200, p.tail(), `{"jsonrpc":"2.0","id":`+x.id+`,"result":{"tools":[]}}`)
	case m.Method == "ping" && p.ignorePing:
		x.untilClosed()
	case m.Method == "ping":
		x.json(200, "", `{"jsonrpc":"2.0","id":`+x.id+`,"result":{}}`)
	case m.Method == "tools/call":
		x.n = p.calls.Add(1)
		p.mu.Lock()
		p.heads = append(p.heads, req.Header)
		p.mu.Unlock()
		p.onCall(x)
	default:
		x.json(404, "", `{"jsonrpc":"2.0","id":`+x.id+`,"error":{"code":-32601,"message":"Method not found"}}`)
	}
	return !(p.closeAfterHandshake && p.calls.Load() == 0)
}

func (p *httpPeer) tail() string {
	if p.closeAfterHandshake {
		return "Connection: close\r\n"
	}
	return ""
}

func (p *httpPeer) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.methods...)
}

func (x *exchangeAt) write(text string) { _, _ = io.WriteString(x.Conn, text) }

func (x *exchangeAt) json(status int, headers, body string) {
	x.write(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		status, http.StatusText(status), len(body), headers, body))
}

func (x *exchangeAt) reply() string {
	return `{"jsonrpc":"2.0","id":` + x.id + `,"result":` + done + `}`
}

func (x *exchangeAt) answer() { x.json(200, "", x.reply()) }

// stream starts an answer by server-sent events that lasts until the connection is closed.
func (x *exchangeAt) stream(events string) {
	x.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events)
}

// reset closes the connection with RST.
func (x *exchangeAt) reset() { resetConn(x.Conn) }

func resetConn(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// untilClosed waits for the client to close the connection.
func (x *exchangeAt) untilClosed() { _, _ = io.Copy(io.Discard, x.r) }

func event(data string) string {
	return "event: message\ndata: " + string(bytes.TrimSpace([]byte(data))) + "\n\n"
}

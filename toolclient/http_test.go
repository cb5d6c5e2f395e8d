//go:build unix

package toolclient

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestHTTPReplySaysWhatThePeerDid(t *testing.T) {
	const short, long = 400 * time.Millisecond, wait
	status := func(code int, headers, body string) func(*exchangeAt) {
		return func(x *exchangeAt) { x.json(code, headers, strings.ReplaceAll(body, "ID", x.id)) }
	}
	stream := func(events string) func(*exchangeAt) {
		return func(x *exchangeAt) { x.stream(strings.ReplaceAll(events, "REPLY", x.reply())); _ = x.Close() }
	}
	tests := []struct {
		name    string
		peer    func(*exchangeAt)
		timeout time.Duration
		written contract.Written
		status  int
		why     string
		errCode int64 // of Reply.Error
	}{
		{"answers", func(x *exchangeAt) { x.answer() }, long, contract.Answered, 200, "the server answered", 0},
		{"answers and closes", func(x *exchangeAt) { x.answer(); _ = x.Close() }, long, contract.Answered, 200, "the server answered", 0},
		{"answers on a stream", stream(event("REPLY")), long, contract.Answered, 200, "the server answered", 0},
		{"answers on a stream after a notification and a comment", stream(": hi\r\n\r\nid: 1\ndata:\n\n" + event(`{"jsonrpc":"2.0","method":"notifications/progress"}`) + "event: message\r\ndata: REPLY\r\n\r\n"), long, contract.Answered, 200, "the server answered", 0},
		{"answers on a stream that ends within the event", stream("data: REPLY"), long, contract.Answered, 200, "the server answered", 0},
		{"answers without a content type", func(x *exchangeAt) { x.write("HTTP/1.0 200 OK\r\n\r\n" + x.reply()); _ = x.Close() }, long, contract.Answered, 200, "the server answered", 0},
		{"answers in pieces", func(x *exchangeAt) {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
			for _, b := range x.reply() {
				x.write("1\r\n" + string(b) + "\r\n")
			}
			x.write("0\r\n\r\n")
		}, long, contract.Answered, 200, "the server answered", 0},
		{"answers in chunks that never end", func(x *exchangeAt) {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + x.reply())
			_ = x.Close()
		}, long, contract.Answered, 200, "the server answered", 0},
		{"error -32602", status(200, "", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"bad"}}`), long, contract.Answered, 200, "answered with error -32602", -32602},
		{"404 with error -32601", status(404, "", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no such method"}}`), long, contract.Answered, 404, "answered with error -32601", -32601},
		{"500 with error -32603", status(500, "", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"oops"}}`), long, contract.Answered, 500, "answered with error -32603", -32603},

		{"error without an id", status(200, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`), long, contract.FullyWritten, 200, "an error (-32700) without an id", -32700},
		{"wrong id", status(200, "", `{"jsonrpc":"2.0","id":424242,"result":{}}`), long, contract.FullyWritten, 200, "the id of another request", 0},
		{"id as text", status(200, "", `{"jsonrpc":"2.0","id":"ID","result":{}}`), long, contract.FullyWritten, 200, "the id of another request", 0},
		{"wrong id on a stream", stream(event(`{"jsonrpc":"2.0","id":424242,"result":{}}`)), long, contract.FullyWritten, 200, "the stream ended without a reply, and held a reply with the id of another request", 0},
		{"neither result nor error", status(200, "", `{"jsonrpc":"2.0","id":ID}`), long, contract.FullyWritten, 200, "neither a result nor an error", 0},
		{"both result and error", status(200, "", `{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}`), long, contract.FullyWritten, 200, "both a result and an error", 0},
		{"two results", status(200, "", `{"jsonrpc":"2.0","id":ID,"result":{},"result":{"x":1}}`), long, contract.FullyWritten, 200, "a member appears twice", 0},
		{"other case of the names", status(200, "", `{"jsonrpc":"2.0","ID":1,"Id":ID,"Result":{}}`), long, contract.FullyWritten, 200, "neither a result nor an error", 0},
		{"truncated JSON", status(200, "", `{"jsonrpc":"2.0","id":ID,"result":{"cont`), long, contract.FullyWritten, 200, "it ends in the middle of the JSON", 0},
		{"shorter than announced", func(x *exchangeAt) {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n" + x.reply()[:20])
			_ = x.Close()
		}, long, contract.FullyWritten, 200, "the answer broke off: unexpected EOF", 0},
		{"garbage", status(200, "", `<html>hello</html>`), long, contract.FullyWritten, 200, "the response is no message: it is not JSON", 0},
		{"no HTTP at all", func(x *exchangeAt) { x.write("SSH-2.0-OpenSSH\r\n"); _ = x.Close() }, long, contract.FullyWritten, 0, "no answer came: ", 0},
		{"empty", status(200, "", ``), long, contract.FullyWritten, 200, "the response is empty", 0},
		{"accepted", status(202, "", ``), long, contract.FullyWritten, 202, "the response is empty", 0},
		{"stream without reply", stream(event(`{"jsonrpc":"2.0","method":"notifications/progress"}`)), long, contract.FullyWritten, 200, "the stream ended without a reply", 0},
		{"stream of garbage", stream(event(`{"jsonrpc":`)), long, contract.FullyWritten, 200, "an event that is no message (it ends in the middle of the JSON)", 0},
		{"closes after reading", func(x *exchangeAt) { _ = x.Close() }, long, contract.FullyWritten, 0, "no answer came: EOF", 0},
		{"resets after reading", func(x *exchangeAt) { x.reset() }, long, contract.FullyWritten, 0, "connection reset by peer", 0},
		{"resets in the answer", func(x *exchangeAt) {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
			time.Sleep(20 * time.Millisecond) // so that the head is read before the reset discards it
			x.reset()
		}, long, contract.FullyWritten, 200, "the answer broke off", 0},

		{"401", status(401, "WWW-Authenticate: Bearer\r\n", ``), long, contract.FullyWritten, 401, "HTTP 401 Unauthorized", 0},
		{"403", status(403, "", `forbidden`), long, contract.FullyWritten, 403, "HTTP 403 Forbidden", 0},
		{"404", status(404, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`), long, contract.FullyWritten, 404, "HTTP 404 Not Found (the response holds an error (-32001) without an id)", -32001},
		{"405", status(405, "", ``), long, contract.FullyWritten, 405, "HTTP 405 Method Not Allowed", 0},
		{"413", status(413, "", ``), long, contract.FullyWritten, 413, "HTTP 413 Request Entity Too Large", 0},
		{"429", status(429, "Retry-After: 7\r\n", ``), long, contract.FullyWritten, 429, "HTTP 429 Too Many Requests", 0},
		{"500", status(500, "", `oops`), long, contract.FullyWritten, 500, "HTTP 500 Internal Server Error (the response is no message: it is not JSON)", 0},
		{"503", status(503, "Retry-After: 7\r\n", ``), long, contract.FullyWritten, 503, "HTTP 503 Service Unavailable", 0},
		{"302", status(302, "Location: /elsewhere\r\n", ``), long, contract.FullyWritten, 302, "redirects", 0},

		{"hangs", func(x *exchangeAt) { x.untilClosed() }, short, contract.FullyWritten, 0, "no answer came before the caller stopped waiting", 0},
		{"hangs in the answer", func(x *exchangeAt) { x.stream(": wait\n\n"); x.untilClosed() }, short, contract.FullyWritten, 0, "no answer came before the caller stopped waiting", 0},
	}
	for _, era := range []string{"modern", "legacy", "stateless"} {
		for _, test := range tests {
			t.Run(era+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				peer := newHTTPPeer(t, era, test.peer)
				p, _ := newPool(t, Options{Linger: -1}, peer.server())
				open(t, p, peer.ref())
				r := p.Call(within(t, test.timeout), peer.ref(), mutation(test.timeout))
				require.Equal(t, test.written, r.Written, r.Why)
				require.Equal(t, test.status, r.HTTPStatus)
				require.Contains(t, r.Why, test.why)
				require.EqualValues(t, 1, peer.calls.Load(), "deliveries")
				require.False(t, r.Sent.IsZero())
				if test.errCode != 0 {
					require.NotNil(t, r.Error)
					require.Equal(t, test.errCode, r.Error.Code)
				} else {
					require.Nil(t, r.Error)
				}
				if test.status == 429 || test.status == 503 {
					require.Equal(t, 7*time.Second, r.RetryAfter)
				}
			})
		}
	}
}

func TestUnreachableServerGotNothing(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			peer := newHTTPPeer(t, era, func(x *exchangeAt) { x.answer() })
			p, _ := newPool(t, Options{}, peer.server())
			open(t, p, peer.ref())
			peer.stop()
			awaitLoss(t, p, peer.ref())
			for range 2 { // with an open session, and without
				r := p.Call(within(t, wait), peer.ref(), mutation(wait))
				require.Equal(t, contract.NotWritten, r.Written, r.Why)
				require.Contains(t, r.Why, "connection refused")
			}
		})
	}
}

func TestResetBeforeTheRequestIsReadIsUnknown(t *testing.T) {
	var accepted atomic.Int64
	const handshake = 2
	peer := newHTTPPeer(t, "modern", nil, func(peer *httpPeer) {
		peer.closeAfterHandshake = true
		peer.onAccept = func(c net.Conn) bool {
			if accepted.Add(1) <= handshake {
				return true
			}
			_, _ = c.Read(make([]byte, 1))
			resetConn(c)
			return false
		}
	})
	p, _ := newPool(t, Options{}, peer.server())
	o, err := p.find(peer.ref())
	require.NoError(t, err)
	_, err = o.session(within(t, wait), time.Time{})
	require.NoError(t, err)
	r := p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Contains(t, []contract.Written{contract.MaybeWritten, contract.FullyWritten}, r.Written, r.Why)
	require.EqualValues(t, handshake+1, accepted.Load(), "it is not sent again")
	require.Zero(t, peer.calls.Load())
}

func TestRefusedHandshakeSaysSoAndSendsNothing(t *testing.T) {
	tests := []struct {
		name   string
		answer string
		status int
		why    string
	}{
		{"401", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 401, "HTTP 401"},
		{"429", "HTTP/1.1 429 Slow Down\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n", 429, "HTTP 429"},
		{"503", "HTTP/1.1 503 Down\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n", 503, "HTTP 503"},
		{"404 in every era", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "HTTP 404"},
		{"redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 307, "redirects"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			peer := newHTTPPeer(t, "modern", nil, func(peer *httpPeer) {
				peer.onAccept = func(c net.Conn) bool {
					r := bufio.NewReader(c)
					for {
						req, err := http.ReadRequest(r)
						if err != nil {
							return false
						}
						_, _ = io.Copy(io.Discard, req.Body)
						_, _ = io.WriteString(c, test.answer)
					}
				}
			})
			p, _ := newPool(t, Options{}, peer.server())
			r := p.Call(within(t, wait), peer.ref(), mutation(wait))
			require.Equal(t, contract.NotWritten, r.Written)
			require.Equal(t, test.status, r.HTTPStatus)
			require.Contains(t, r.Why, test.why)
			if test.status == 429 || test.status == 503 {
				require.Equal(t, 3*time.Second, r.RetryAfter)
			}
		})
	}
}

func TestRedirectIsNeverFollowed(t *testing.T) {
	for _, code := range []string{"301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"} {
		t.Run(code, func(t *testing.T) {
			other := newHTTPPeer(t, "modern", func(x *exchangeAt) { x.answer() })
			peer := newHTTPPeer(t, "modern", func(x *exchangeAt) {
				x.write("HTTP/1.1 " + code + "\r\nLocation: " + other.url + "\r\nContent-Length: 0\r\n\r\n")
			})
			p, _ := newPool(t, Options{}, peer.server())
			r := p.Call(within(t, wait), peer.ref(), mutation(wait))
			require.Equal(t, contract.FullyWritten, r.Written)
			require.Equal(t, code[:3], strconv.Itoa(r.HTTPStatus))
			require.EqualValues(t, 1, peer.calls.Load())
			require.Empty(t, other.seen())
		})
	}
}

// awaitLoss waits until the client has noticed that a connection of its was closed.
func awaitLoss(t *testing.T, p *Pool, ref contract.ServerRef) {
	t.Helper()
	o, err := p.find(ref)
	require.NoError(t, err)
	require.Eventually(t, o.current.(*httpSession).suspect, wait, tick)
}

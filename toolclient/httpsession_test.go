//go:build unix

package toolclient

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestDroppedIdleConnectionDeliversOnce(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era+"/read and dropped", func(t *testing.T) {
			peer := newHTTPPeer(t, era, func(x *exchangeAt) {
				if x.n == 1 {
					x.answer()
					return
				}
				_ = x.Close()
			})
			p, _ := newPool(t, Options{}, peer.server())
			require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
			r := p.Call(within(t, wait), peer.ref(), mutation(wait))
			require.Equal(t, contract.FullyWritten, r.Written, r.Why)
			require.EqualValues(t, 2, peer.calls.Load(), "each call once")
		})
		t.Run(era+"/dropped while idle", func(t *testing.T) {
			peer := newHTTPPeer(t, era, func(x *exchangeAt) {
				x.answer()
				_ = x.Close()
			})
			p, _ := newPool(t, Options{}, peer.server())
			for n := range 5 {
				r := p.Call(within(t, wait), peer.ref(), mutation(wait))
				require.Equal(t, contract.Answered, r.Written, r.Why)
				require.EqualValues(t, n+1, peer.calls.Load())
				awaitLoss(t, p, peer.ref())
			}
		})
	}
}

func TestRestartedServerGetsANewSessionBeforeTheCall(t *testing.T) {
	for _, era := range []string{"modern", "legacy", "stateless"} {
		t.Run(era, func(t *testing.T) {
			peer := newHTTPPeer(t, era, func(x *exchangeAt) { x.answer() })
			p, _ := newPool(t, Options{}, peer.server())
			require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
			peer.stop()
			peer.sessions.Add(1) // it has forgotten the session
			peer.listen(peer.ln.Addr().String())
			awaitLoss(t, p, peer.ref())
			r := p.Call(within(t, wait), peer.ref(), mutation(wait))
			require.Equal(t, contract.Answered, r.Written, r.Why)
			require.EqualValues(t, 2, peer.calls.Load())
		})
	}
}

func TestForgottenSessionIsUnknownOnceAndThenNew(t *testing.T) {
	peer := newHTTPPeer(t, "legacy", func(x *exchangeAt) { x.answer() })
	p, _ := newPool(t, Options{}, peer.server())
	require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
	peer.sessions.Add(1)
	r := p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Equal(t, contract.FullyWritten, r.Written, "whether the call was dispatched first cannot be known")
	require.Equal(t, 404, r.HTTPStatus)
	require.EqualValues(t, 1, peer.calls.Load())
	r = p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Equal(t, contract.Answered, r.Written, r.Why)
	require.EqualValues(t, 2, peer.calls.Load())
}

func TestRefusalOfTheHeadersMakesTheToolsKnownAnew(t *testing.T) {
	peer := newHTTPPeer(t, "modern", func(x *exchangeAt) {
		if x.n == 1 {
			x.json(400, "", `{"jsonrpc":"2.0","id":`+x.id+`,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}}`)
			return
		}
		x.answer()
	})
	p, _ := newPool(t, Options{}, peer.server())
	r := p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Equal(t, contract.Answered, r.Written)
	require.EqualValues(t, -32020, r.Error.Code)
	require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
	require.Equal(t, []string{
		"POST server/discover", "POST tools/list", "POST tools/call",
		"POST server/discover", "POST tools/list", "POST tools/call",
	}, peer.seen())
}

func TestSessionEndsPolitely(t *testing.T) {
	peer := newHTTPPeer(t, "legacy", func(x *exchangeAt) { x.answer() })
	p := NewPool(Options{})
	require.NoError(t, p.Add(peer.server()))
	require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
	require.NoError(t, p.Close())
	require.Equal(t, []string{"POST server/discover", "POST initialize", "POST notifications/initialized", "POST tools/call", "DELETE"}, peer.seen())
}

func TestLateReplyOverHTTPIsKept(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		for _, how := range []string{"json", "stream"} {
			t.Run(era+"/"+how, func(t *testing.T) {
				answer := make(chan struct{})
				peer := newHTTPPeer(t, era, func(x *exchangeAt) {
					if how == "stream" {
						x.stream(": working\n\n")
						<-answer
						x.write(event(x.reply()))
						_ = x.Close()
						return
					}
					<-answer
					x.answer()
				})
				p, _ := newPool(t, Options{}, peer.server())
				r := p.Call(within(t, 300*time.Millisecond), peer.ref(), mutation(200*time.Millisecond))
				require.Equal(t, contract.FullyWritten, r.Written, r.Why)
				require.Contains(t, r.Why, "is kept")
				close(answer)
				var ok bool
				require.Eventually(t, func() bool { r, ok = p.Late(peer.ref(), "tx/step/1"); return ok }, wait, tick)
				require.Equal(t, contract.Answered, r.Written)
				require.JSONEq(t, done, string(r.Result))
				require.EqualValues(t, 1, peer.calls.Load())
				for _, seen := range peer.seen() {
					require.NotContains(t, seen, "cancelled", "we would rather learn the outcome")
				}
			})
		}
	}
}

func TestConnectionIsClosedAtOnceWithoutLingerAndLaterWithIt(t *testing.T) {
	for _, linger := range []time.Duration{-1, 200 * time.Millisecond} {
		closed := make(chan struct{})
		peer := newHTTPPeer(t, "modern", func(x *exchangeAt) {
			x.untilClosed()
			close(closed)
		})
		p, _ := newPool(t, Options{Linger: linger}, peer.server())
		r := p.Call(within(t, 200*time.Millisecond), peer.ref(), mutation(wait))
		require.Equal(t, contract.FullyWritten, r.Written)
		require.Contains(t, r.Why, map[bool]string{true: "the connection was closed", false: "is kept"}[linger < 0])
		select {
		case <-closed:
		case <-time.After(wait):
			t.Fatal("the connection stays open")
		}
	}
}

func TestStreamOfAHandshakeSessionIsResumed(t *testing.T) {
	peer := newHTTPPeer(t, "legacy", nil)
	var mu sync.Mutex
	var reply, lastID string
	gets := 0
	peer.onCall = func(x *exchangeAt) {
		mu.Lock()
		defer mu.Unlock()
		if x.req.Method == http.MethodPost {
			reply = x.reply()
			x.stream("id: 7\nretry: 20\ndata:\n\n")
			_ = x.Close()
			return
		}
		lastID = x.req.Header.Get("Last-Event-ID")
		if gets++; gets == 1 {
			x.stream("id: 8\ndata: " + `{"jsonrpc":"2.0","method":"notifications/message"}` + "\n\n")
		} else {
			x.stream(event(reply))
		}
		_ = x.Close()
	}
	p, _ := newPool(t, Options{}, peer.server())
	r := p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Equal(t, contract.Answered, r.Written, r.Why)
	require.EqualValues(t, 1, peer.calls.Load())
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 2, gets)
	require.Equal(t, "8", lastID)
}

func TestServersRequestsOnAStreamAreAnswered(t *testing.T) {
	peer := newHTTPPeer(t, "legacy", nil)
	peer.onCall = func(x *exchangeAt) {
		x.stream(event(`{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}`) + event(`{"jsonrpc":"2.0","id":2,"method":"ping"}`))
		for {
			peer.mu.Lock()
			n := len(peer.posted)
			peer.mu.Unlock()
			if n == 2 {
				break
			}
			time.Sleep(tick)
		}
		x.write(event(x.reply()))
		_ = x.Close()
	}
	p, _ := newPool(t, Options{}, peer.server())
	r := p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Equal(t, contract.Answered, r.Written, r.Why)
	require.ElementsMatch(t, []string{
		`{"jsonrpc":"2.0","id":"s1","error":{"code":-32601,"message":"Method not found: this client offers no capabilities"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{}}`,
	}, peer.posted)
}

func TestConcurrentHTTPCallsKeepTheirReplies(t *testing.T) {
	var mu sync.Mutex
	held := make(chan struct{})
	n := 0
	peer := newHTTPPeer(t, "legacy", func(x *exchangeAt) {
		mu.Lock()
		n++
		first := n == 1
		mu.Unlock()
		if first {
			<-held
		} else {
			defer close(held)
		}
		x.json(200, "", `{"jsonrpc":"2.0","id":`+x.id+`,"result":{"of":`+x.id+`}}`)
	})
	p, _ := newPool(t, Options{}, peer.server())
	var calls sync.WaitGroup
	replies := make([]Reply, 2)
	for i := range replies {
		calls.Go(func() { replies[i] = p.Call(within(t, wait), peer.ref(), mutation(wait)) })
	}
	calls.Wait()
	require.Equal(t, contract.Answered, replies[0].Written)
	require.Equal(t, contract.Answered, replies[1].Written)
	require.NotEqual(t, string(replies[0].Result), string(replies[1].Result))
	require.EqualValues(t, 1, peer.sessions.Load(), "one handshake for both")
}

func TestNothingIsWrittenOverHTTPPastTheDeadline(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			peer := newHTTPPeer(t, era, func(x *exchangeAt) { x.answer() })
			p, _ := newPool(t, Options{}, peer.server())
			clock := &freezer{}
			p.now = clock.now
			open(t, p, peer.ref())
			clock.arm(1)
			r := p.Call(within(t, wait), peer.ref(), mutation(10*time.Second))
			require.Equal(t, contract.NotWritten, r.Written, r.Why)
			require.Contains(t, r.Why, "past its write deadline")
			require.Zero(t, peer.calls.Load())
			require.Zero(t, peer.partial.Load())
		})
	}
}

func TestCallsOverTLSAreWatchedToo(t *testing.T) {
	var bodies []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m request
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Content-Type", "application/json")
		result := `{"supportedVersions":["2026-07-28"],"tools":[]}`
		if m.Method == "tools/call" {
			bodies = append(bodies, string(body))
			if len(bodies) == 2 {
				panic(http.ErrAbortHandler)
			}
			result = done
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	s := contract.Server{Name: "peer", HTTP: &contract.HTTPServer{URL: server.URL}}
	p, _ := newPool(t, Options{}, s)
	r := p.Call(within(t, wait), s.Ref(), mutation(wait))
	require.Equal(t, contract.NotWritten, r.Written, "the certificate is not trusted")
	require.Contains(t, r.Why, "certificate")

	p.trust.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	require.Equal(t, contract.Answered, p.Call(within(t, wait), s.Ref(), mutation(wait)).Written)
	r = p.Call(within(t, wait), s.Ref(), mutation(wait))
	require.Equal(t, contract.FullyWritten, r.Written, r.Why)
	server.Close()
	require.Len(t, bodies, 2)
	awaitLoss(t, p, s.Ref())
	r = p.Call(within(t, wait), s.Ref(), mutation(wait))
	require.Equal(t, contract.NotWritten, r.Written, r.Why)
}

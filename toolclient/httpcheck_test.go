//go:build unix

package toolclient

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestLongIdleSessionIsCheckedOnceBeforeItIsUsed(t *testing.T) {
	for era, pings := range map[string]int{"modern": 0, "stateless": 0, "legacy": 1} {
		t.Run(era, func(t *testing.T) {
			peer := newHTTPPeer(t, era, func(x *exchangeAt) { x.answer() })
			p, _ := newPool(t, Options{}, peer.server())
			var ahead atomic.Int64
			p.now = func() time.Time { return wallClock().Add(time.Duration(ahead.Load())) }
			c := mutation(time.Hour)
			require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), c).Written)
			ahead.Store(int64(longIdle))
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() {
					if r := p.Call(within(t, wait), peer.ref(), c); r.Written != contract.Answered {
						t.Error(r.Why)
					}
				})
			}
			calls.Wait()
			seen := peer.seen()
			require.Equal(t, pings, len(seen)-len(slices.DeleteFunc(seen, func(m string) bool { return m == "POST ping" })))
			require.EqualValues(t, 11, peer.calls.Load())
		})
	}
}

func TestBusyServerThatDoesNotAnswerAPingIsStillCalled(t *testing.T) {
	peer := newHTTPPeer(t, "legacy", func(x *exchangeAt) { x.answer() }, func(peer *httpPeer) { peer.ignorePing = true })
	p, _ := newPool(t, Options{}, peer.server())
	require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
	o, err := p.find(peer.ref())
	require.NoError(t, err)
	o.current.(*httpSession).losses.Add(1)
	r := p.Call(within(t, wait), peer.ref(), mutation(300*time.Millisecond))
	require.Equal(t, contract.NotWritten, r.Written, "its time ran out over the ping")
	require.Contains(t, r.Why, "past its write deadline")
	require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written, "and it is not asked again at once")
	require.EqualValues(t, 2, peer.calls.Load())
}

func TestServerThatChangesItsEraIsFoundAgain(t *testing.T) {
	for _, eras := range [][2]string{{"legacy", "modern"}, {"modern", "legacy"}, {"stateless", "modern"}} {
		t.Run(strings.Join(eras[:], " to "), func(t *testing.T) {
			peer := newHTTPPeer(t, eras[0], func(x *exchangeAt) { x.answer() })
			p, _ := newPool(t, Options{}, peer.server())
			require.Equal(t, contract.Answered, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
			peer.stop()
			awaitLoss(t, p, peer.ref())
			require.Equal(t, contract.NotWritten, p.Call(within(t, wait), peer.ref(), mutation(wait)).Written)
			peer.era = eras[1]
			peer.listen(peer.ln.Addr().String())
			r := p.Call(within(t, wait), peer.ref(), mutation(wait))
			require.Equal(t, contract.Answered, r.Written, r.Why)
			require.EqualValues(t, 2, peer.calls.Load())
		})
	}
}

func TestEarlyRefusalOfAHalfWrittenRequestIsKnown(t *testing.T) {
	answered := make(chan struct{})
	peer := newHTTPPeer(t, "modern", nil, afterHandshake(func(c net.Conn) {
		x := &exchangeAt{Conn: c, r: bufio.NewReader(c)}
		_, _ = http.ReadRequest(x.r)
		x.json(413, "", "")
		<-answered
	}))
	p, _ := newPool(t, Options{}, peer.server())
	o, err := p.find(peer.ref())
	require.NoError(t, err)
	_, err = o.session(within(t, wait), time.Time{})
	require.NoError(t, err)
	c := mutation(wait)
	c.Args = json.RawMessage(`{"text":"` + strings.Repeat("x", 12<<20) + `"}`)
	r := p.Call(within(t, wait), peer.ref(), c)
	close(answered)
	require.Equal(t, contract.MaybeWritten, r.Written, r.Why)
	require.Equal(t, 413, r.HTTPStatus)
}

func TestRetryAfterIsReadAsSecondsOrDate(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0,
		"Mon, 30 Nov 2026 12:01:00 GMT": time.Minute, "Mon, 30 Nov 2026 11:00:00 GMT": 0,
	}
	for value, want := range tests {
		resp := &http.Response{Header: http.Header{"Retry-After": {value}}}
		require.Equal(t, want, retryAfter(resp, now), value)
	}
}

func TestStreamThatCannotBeResumedIsUnknown(t *testing.T) {
	peer := newHTTPPeer(t, "legacy", func(x *exchangeAt) {
		if x.req.Method == http.MethodGet {
			x.json(405, "", "")
			return
		}
		x.stream("id: 7\nretry: 20\ndata:\n\n")
		_ = x.Close()
	})
	p, _ := newPool(t, Options{}, peer.server())
	r := p.Call(within(t, wait), peer.ref(), mutation(wait))
	require.Equal(t, contract.FullyWritten, r.Written)
	require.Contains(t, r.Why, "the stream ended without a reply; it could not be resumed: HTTP 405")
	require.EqualValues(t, 1, peer.calls.Load())
}

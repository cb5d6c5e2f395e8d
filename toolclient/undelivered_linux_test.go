package toolclient

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// What the kernel has accepted, and the peer has not taken yet, must not arrive after the caller was told.
func TestUndeliveredRequestIsDroppedByTheKernel(t *testing.T) {
	for _, size := range []int{200 << 10, 16 << 20} { // all of it in the kernel's buffer, and only a part
		begun := make(chan struct{})
		read := make(chan struct{})
		whole := make(chan bool, 1)
		peer := newHTTPPeer(t, "modern", nil, func(peer *httpPeer) {
			peer.closeAfterHandshake = true
			var accepted atomic.Int64
			peer.onAccept = func(c net.Conn) bool {
				if accepted.Add(1) <= 2 {
					return true
				}
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				r := bufio.NewReader(c)
				_, _ = r.Peek(1)
				close(begun)
				<-read
				req, err := http.ReadRequest(r)
				if err == nil {
					_, err = io.Copy(io.Discard, req.Body)
				}
				whole <- err == nil
				return false
			}
		})
		p, _ := newPool(t, Options{}, peer.server())
		o, err := p.find(peer.ref())
		require.NoError(t, err)
		_, err = o.session(within(t, wait), time.Time{})
		require.NoError(t, err)
		c := mutation(wait)
		c.Args = json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		r := p.Call(ctx, peer.ref(), c)
		require.Contains(t, []contract.Written{contract.MaybeWritten, contract.FullyWritten}, r.Written, r.Why)
		require.Contains(t, r.Why, "the connection was closed")
		close(read)
		require.False(t, <-whole, "the request was delivered after its caller had gone")
	}
}

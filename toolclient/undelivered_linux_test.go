package toolclient

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// What the kernel has accepted, and the peer has not taken yet, must not arrive after the caller was told.
func TestUndeliveredRequestIsDroppedByTheKernel(t *testing.T) {
	for _, size := range []int{200 << 10, 16 << 20} { // all of it in the kernel's buffer, and only a part
		peer, stall := newStalledPeer(t)
		p, _ := newPool(t, Options{}, peer.server())
		o, err := p.find(peer.ref())
		require.NoError(t, err)
		_, err = o.session(within(t, wait), time.Time{})
		require.NoError(t, err)
		c := mutation(wait)
		c.Args = json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-stall.begun
			cancel()
		}()
		r := p.Call(ctx, peer.ref(), c)
		require.Contains(t, []contract.Written{contract.MaybeWritten, contract.FullyWritten}, r.Written, r.Why)
		require.Contains(t, r.Why, "the connection was closed")
		close(stall.read)
		require.False(t, <-stall.whole, "the request was delivered after its caller had gone")
	}
}

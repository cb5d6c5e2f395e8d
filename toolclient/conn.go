package toolclient

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is a connection whose writes are watched: each goes through the gate of the request that the connection carries.
// Under TLS it is the inner one, so that what counts is what reaches the network.
type conn struct {
	net.Conn
	tcp    *net.TCPConn
	raw    syscall.RawConn
	gate   atomic.Pointer[gate] // nil: whatever is written now changes nothing
	clear  atomic.Bool          // what is written is HTTP itself
	ended  atomic.Bool          // closed by us
	onLost func()               // it has come to its end, on whichever side
}

func (c *conn) Write(p []byte) (int, error) {
	g := c.gate.Load()
	if g == nil {
		return c.tcp.Write(p)
	}
	var follow func([]byte)
	if c.clear.Load() {
		follow = g.follow
	}
	return writeThrough(c.tcp, c.raw, g, p, follow)
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.tcp.Read(p)
	if err != nil && !c.ended.Load() {
		c.onLost()
	}
	return n, err
}

// Close closes the connection. What the peer has not acknowledged is dropped rather than delivered later.
func (c *conn) Close() error {
	if c.ended.Swap(true) {
		return net.ErrClosed
	}
	c.onLost()
	if c.gate.Load() != nil && c.unsent() {
		_ = c.tcp.SetLinger(0)
	}
	return c.tcp.Close()
}

func (c *conn) unsent() bool { return unsent(c.raw) }

// secured is a TLS connection over a watched one.
type secured struct {
	*tls.Conn
	inner *conn
}

func (c secured) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if g := c.inner.gate.Load(); g != nil {
		g.followed(p[:n])
	}
	return n, err
}

// carry makes the request's gate the one that the connection obeys.
func carry(c net.Conn, g *gate) {
	inner := watched(c)
	if inner != nil {
		inner.clear.Store(c == net.Conn(inner))
		inner.gate.Store(g)
	}
	if g != nil {
		g.carriedBy(inner)
	}
}

// watched finds the watched connection below c.
func watched(c net.Conn) *conn {
	for {
		switch outer := c.(type) {
		case *conn:
			return outer
		case secured:
			return outer.inner
		case *tls.Conn: // behind a proxy
			c = outer.NetConn()
		default:
			return nil
		}
	}
}

// newTransport makes the HTTP client of one session. It speaks HTTP/1.1 only: one request at a time on a connection, so
// that every byte belongs to a known request. It is used by RoundTrip alone: nothing follows redirects or keeps cookies.
func newTransport(trust *tls.Config, onLost func()) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	dial := func(ctx context.Context, network, addr string) (*conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			_ = c.Close()
			return nil, net.UnknownNetworkError(network)
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			_ = tcp.Close()
			return nil, err
		}
		return &conn{Conn: tcp, tcp: tcp, raw: raw, onLost: onLost}, nil
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			inner, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			config := trust.Clone()
			config.NextProtos = []string{"http/1.1"}
			if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
				config.ServerName = addr
			}
			outer := tls.Client(inner, config)
			handshake, cancel := context.WithTimeout(ctx, dialer.Timeout)
			defer cancel()
			if err := outer.HandshakeContext(handshake); err != nil {
				_ = inner.Close()
				return nil, err
			}
			return secured{Conn: outer, inner: inner}, nil
		},
		TLSClientConfig:     trust.Clone(),
		Protocols:           protocols,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: dialer.Timeout,
	}
}

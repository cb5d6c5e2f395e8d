package toolclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpx-go/mcpx/contract"
)

// session is an open session with a server: over stdio or over HTTP.
type session interface {
	// call sends a tools/call. The second result: nothing was written, and a new session may be tried.
	call(ctx context.Context, c Call) (Reply, bool)
	tools(ctx context.Context) ([]Tool, error)
	// gone tells that the session takes no more calls.
	gone() bool
	// proven tells that the session has been of use.
	proven() bool
	// retire lets what is still in flight come to its end, and returns when nothing of the session is left.
	retire()
	// close ends the session at once.
	close()
}

// owner is one server of the pool: a system that owns resources.
type owner struct {
	pool   *Pool
	server contract.Server
	ref    contract.ServerRef
	url    *url.URL // of an HTTP server, without user information
	log    *slog.Logger
	late   *lateReplies

	mu         sync.Mutex
	current    session
	connecting *connecting
	failures   int // sessions in a row that could not be opened, or died unproven
	failedAt   time.Time
	legacy     bool // it was of the handshake era when last seen
	old        []session
}

// connecting is the opening of a session, shared by all who wait for it.
type connecting struct {
	done    chan struct{}
	session session
	err     error
}

// reservedHeaders are set by the session alone. The idempotency keys make net/http, and proxies, send a POST again.
var reservedHeaders = []string{
	"Accept", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Last-Event-Id",
	"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "Transfer-Encoding", "X-Idempotency-Key",
}

// newOwner checks the definition as far as that goes without touching the server.
func newOwner(p *Pool, s contract.Server) (*owner, error) {
	o := &owner{
		pool: p, server: s, ref: s.Ref(),
		log:  p.options.Logger.With("server", s.Name),
		late: newLateReplies(p.options.LateReplies, p.options.LateBytes),
	}
	var values map[string]string
	switch {
	case s.HTTP != nil && s.Stdio == nil && s.WebMCP == nil:
		u, err := url.Parse(s.HTTP.URL)
		if err != nil {
			return nil, errors.New("its URL cannot be read")
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, errors.New("its URL needs the scheme http or https, and a host")
		}
		clean := *u
		clean.User, clean.Fragment = nil, ""
		o.url = &clean
		for name := range s.HTTP.Headers {
			if !httpguts.ValidHeaderFieldName(name) {
				return nil, fmt.Errorf("%q is not a header name", name)
			}
			if slices.Contains(reservedHeaders, http.CanonicalHeaderKey(name)) {
				return nil, fmt.Errorf("the header %s cannot be set here", name)
			}
		}
		values = s.HTTP.Headers
	case s.Stdio != nil && s.HTTP == nil && s.WebMCP == nil:
		if len(s.Stdio.Command) == 0 || s.Stdio.Command[0] == "" {
			return nil, errors.New("it has no command")
		}
		values = s.Stdio.Env
	default:
		return nil, errors.New("it must be reached over either http or stdio")
	}
	for _, value := range values {
		for _, name := range references(value) {
			if !slices.Contains(s.Secrets, name) {
				return nil, fmt.Errorf("the secret %q is not in its list of secrets: add it there", name)
			}
		}
	}
	return o, nil
}

func (o *owner) sameAs(other *owner) bool { return reflect.DeepEqual(o.server, other.server) }

func (o *owner) secrets() *secretResolver {
	return &secretResolver{lookup: o.pool.options.Secret, allowed: o.server.Secrets}
}

var errStillConnecting = errors.New("the session was not open yet")

// session returns the open session, or waits for one to be opened. That goes on when the caller's time is over.
func (o *owner) session(ctx context.Context, deadline time.Time) (session, error) {
	o.mu.Lock()
	if o.current != nil && !o.current.gone() {
		defer o.mu.Unlock()
		return o.current, nil
	}
	if o.connecting == nil {
		o.retire()
		c := &connecting{done: make(chan struct{})}
		if !o.pool.background(func() { o.connect(c) }) {
			o.mu.Unlock()
			return nil, ErrClosed
		}
		o.connecting = c
	}
	c := o.connecting
	o.mu.Unlock()

	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(deadline.Sub(o.pool.now()))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-c.done:
		return c.session, c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", errGone, errStillConnecting)
	case <-expired:
		return nil, fmt.Errorf("%s: %w", errPastDeadline, errStillConnecting)
	}
}

// retire lets go of a session that is gone. The lock is held.
func (o *owner) retire() {
	if o.current == nil {
		return
	}
	dead := o.current
	o.current = nil
	if dead.proven() {
		o.failures = 0
	} else {
		o.failures++
	}
	o.failedAt = o.pool.now()
	o.old = append(o.old, dead)
	o.pool.background(func() { // after a Close, that one has closed it
		dead.retire()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.old = slices.DeleteFunc(o.old, func(s session) bool { return s == dead })
	})
}

// pause is how long to wait before the next session is opened: nothing at first, then 100 ms, doubling to 2 s. The lock
// is held.
func (o *owner) pause() time.Duration {
	if o.failures == 0 {
		return 0
	}
	delay := min(100*time.Millisecond<<min(o.failures-1, 8), 2*time.Second)
	return delay - o.pool.now().Sub(o.failedAt)
}

func (o *owner) connect(c *connecting) {
	o.mu.Lock()
	pause, legacy := o.pause(), o.legacy
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(o.pool.ctx, o.pool.options.ConnectTimeout)
	defer cancel()
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	var s session
	var p protocol
	var err error
	if o.server.HTTP != nil {
		s, p, err = openHTTP(ctx, o, legacy)
	} else {
		s, p, err = openStdio(ctx, o, legacy)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.connecting = nil
	if err != nil {
		c.err = err
		o.failures++
		o.failedAt = o.pool.now()
		o.log.Warn("no session", "why", err.Error())
	} else {
		c.session = s
		o.current = s
		o.legacy = !p.modern
		o.log.Debug("session open", "protocol", p.version)
	}
	close(c.done)
}

// unreachable is the reply of a call for which there was no session.
func (o *owner) unreachable(err error) Reply {
	r := nothing("nothing was sent: %s", err)
	var ce *connectError
	if errors.As(err, &ce) {
		r.HTTPStatus, r.RetryAfter = ce.status, ce.retryAfter
	}
	return r
}

// keepLate keeps a reply whose caller has gone.
func (o *owner) keepLate(id string, r Reply) {
	if o.late.put(id, r) {
		o.log.Info("an answer came after its caller had stopped waiting", "call", id)
	}
}

func (o *owner) close() {
	o.mu.Lock()
	open := slices.Clone(o.old)
	if o.current != nil {
		open = append(open, o.current)
	}
	connecting := o.connecting
	o.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range open {
		closing.Go(s.close)
	}
	closing.Wait()
	if connecting != nil {
		o.pool.cancel()
		<-connecting.done
		if connecting.session != nil {
			connecting.session.close()
		}
	}
}

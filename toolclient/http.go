package toolclient

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// longIdle is how long a connection may have been unused before it is distrusted: something on the way may have
	// forgotten it.
	longIdle = 30 * time.Second
	// pingTime is how long a distrusted session may take to answer a ping.
	pingTime = 3 * time.Second
	// listTime is how long a server may take to list its tools while a session is opened.
	listTime = 10 * time.Second
	// farewell is how long a server may take to hear that its session is over, or to end a stream after its reply.
	farewell = time.Second
	// maxLingering is how many replies may be waited for in the background.
	maxLingering = 64
)

// httpSession is a session with a server over streamable HTTP. In 2026-07-28 there is nothing on the server's side of it.
type httpSession struct {
	o         *owner
	log       *slog.Logger
	p         protocol
	header    http.Header // declared, with secrets filled in
	scrub     *strings.Replacer
	transport *http.Transport
	mirrored  map[string]*mcp.Tool // tools with arguments that go into headers

	ctx       context.Context
	cancel    context.CancelFunc
	opened    atomic.Bool   // the handshake is done
	losses    atomic.Int64  // connections that have ended: the server may have, too, and have forgotten the session
	checked   atomic.Int64  // how many of them had when it was last known to stand
	checking  chan struct{} // held while it is asked
	answered  atomic.Bool
	lingering atomic.Int64

	mu       sync.Mutex
	id       string // Mcp-Session-Id, where the server gave one
	lost     string // why the session takes no more calls
	closed   bool
	running  int // exchanges in flight
	lastUsed time.Time
	parts    sync.WaitGroup
}

// openHTTP shakes hands with the server.
func openHTTP(ctx context.Context, o *owner, legacyFirst bool) (session, protocol, error) {
	s, err := newHTTPSession(o)
	if err != nil {
		return nil, protocol{}, failed("%s: %s", o.ref.Name, err)
	}
	hands := handshake{link: s, info: o.pool.options.ClientInfo, probe: o.pool.options.DiscoverTimeout, legacyFirst: legacyFirst}
	s.p, err = hands.open(ctx)
	if err == nil && s.p.modern {
		err = s.learnMirrored(ctx)
	}
	if err != nil {
		s.close()
		return nil, protocol{}, err
	}
	s.checked.Store(s.losses.Load())
	s.opened.Store(true)
	return s, s.p, nil
}

func newHTTPSession(o *owner) (*httpSession, error) {
	secrets := o.secrets()
	header := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(o.server.HTTP.Headers)) {
		value, err := secrets.resolve(o.server.HTTP.Headers[name])
		if err != nil {
			return nil, err
		}
		header.Set(name, value)
	}
	if u, err := url.Parse(o.server.HTTP.URL); err == nil && u.User != nil && header.Get("Authorization") == "" {
		password, _ := u.User.Password()
		basic := http.Request{Header: header}
		basic.SetBasicAuth(u.User.Username(), password)
		secrets.hide(password)
		secrets.hide(strings.TrimPrefix(header.Get("Authorization"), "Basic "))
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", o.pool.options.ClientInfo.Name+"/"+o.pool.options.ClientInfo.Version)
	}
	s := &httpSession{
		o: o, log: o.log, header: header, scrub: secrets.scrubber(),
		checking: make(chan struct{}, 1), lastUsed: o.pool.now(),
	}
	s.transport = newTransport(o.pool.trust, func() { s.losses.Add(1) })
	s.ctx, s.cancel = context.WithCancel(o.pool.ctx)
	return s, nil
}

// learnMirrored finds the tools whose arguments go into Mcp-Param headers: a server that names such arguments refuses
// calls without them. A server that cannot list its tools has none.
func (s *httpSession) learnMirrored(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	tools, err := listTools(limited, s, s.p)
	if isFinal(err) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		s.log.Debug("the tools could not be listed", "why", s.scrub.Replace(err.Error()))
		return nil
	}
	s.mirrored = map[string]*mcp.Tool{}
	for _, t := range tools {
		tool := &mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}
		if len(mcp.ExtractParamHeaderBindings(tool)) > 0 {
			s.mirrored[t.Name] = tool
		}
	}
	return nil
}

// tools lists the tools. Of a modern server, those whose header annotations are invalid are left out, as 2026-07-28
// wants it.
func (s *httpSession) tools(ctx context.Context) ([]Tool, error) {
	tools, err := listTools(ctx, s, s.p)
	if err != nil || !s.p.modern {
		return tools, err
	}
	return slices.DeleteFunc(tools, func(t Tool) bool {
		err := mcp.ValidateParamHeaderAnnotations(&mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema})
		if err != nil {
			s.log.Warn("a tool is left out: its x-mcp-header annotations are invalid", "tool", t.Name, "why", err.Error())
		}
		return err != nil
	}), nil
}

// background runs f as a part of the session, unless that is closed.
func (s *httpSession) background(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.parts.Go(f)
	return true
}

// respond answers a request that a server of the handshake era made on a reply's stream.
func (s *httpSession) respond(p protocol, request message) {
	s.background(func() {
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		defer cancel()
		if err := s.post(ctx, outgoing{p: p, rpc: "an answer to " + clip(request.method, 40), body: encodeResponse(request)}); err != nil {
			s.log.Debug("a request of the server's could not be answered", "why", err.Error())
		}
	})
}

// check asks a session that may have been forgotten whether it still stands, before anything that matters is sent on it.
func (s *httpSession) check(ctx context.Context, deadline time.Time) error {
	if !s.suspect() && s.idle() < longIdle {
		return nil
	}
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return errGone
	}
	if s.idle() >= longIdle {
		s.transport.CloseIdleConnections()
	} else if !s.suspect() {
		return nil
	}
	losses := s.losses.Load()
	if s.sessionID() == "" {
		s.checked.Store(losses)
		s.used()
		return nil
	}
	limit := s.o.pool.now().Add(pingTime)
	if !deadline.IsZero() && deadline.Before(limit) {
		limit = deadline
	}
	ping, cancel := context.WithTimeout(ctx, limit.Sub(s.o.pool.now()))
	defer cancel()
	_, err := s.ask(ping, s.p, "ping")
	switch {
	case err == nil:
		s.checked.Store(losses)
		return nil
	case s.gone():
		return err
	case ping.Err() != nil:
		s.checked.Store(s.losses.Load())
		return ctx.Err() // a server that does not answer a ping may be busy
	}
	s.lose(err.Error())
	return err
}

// suspect tells whether a connection has ended since the session was last checked.
func (s *httpSession) suspect() bool { return s.losses.Load() != s.checked.Load() }

func (s *httpSession) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.pool.now().Sub(s.lastUsed)
}

func (s *httpSession) used() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsed = s.o.pool.now()
}

func (s *httpSession) sessionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// judge lets go of a session that the answer shows to be of no use any more.
func (s *httpSession) judge(in incoming) {
	switch {
	case in.reply != nil && in.reply.err != nil &&
		(in.reply.err.Code == codeUnsupportedVersion || in.reply.err.Code == codeHeaderMismatch):
		s.lose(whyAnswered(*in.reply)) // its protocol or its tools have changed
	case in.reply != nil, in.status < 400:
	case in.status == http.StatusRequestEntityTooLarge, in.status == http.StatusTooManyRequests,
		in.status >= 500:
	default:
		s.lose(statusText(in.status))
	}
}

// lose makes the owner open another session. What happens during the handshake is judged there.
func (s *httpSession) lose(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == "" && s.opened.Load() {
		s.lost = why
	}
}

func (s *httpSession) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost != ""
}

func (s *httpSession) proven() bool { return s.answered.Load() }

func (s *httpSession) retire() {
	s.parts.Wait()
	s.close()
}

func (s *httpSession) close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	polite := first && s.id != "" && s.lost == "" && s.running == 0
	s.mu.Unlock()
	if polite {
		s.goodbye()
	}
	s.cancel()
	s.parts.Wait()
	s.transport.CloseIdleConnections()
}

// goodbye tells a server of the handshake era that its session is over.
func (s *httpSession) goodbye() {
	ctx, cancel := context.WithTimeout(s.ctx, farewell)
	defer cancel()
	if resp, _, err := s.send(ctx, outgoing{verb: http.MethodDelete, p: s.p}); err == nil {
		_ = resp.Body.Close()
	}
}

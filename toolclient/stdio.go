package toolclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

// stdioSession is one run of a stdio server's process: newline-framed JSON-RPC over its input and output.
type stdioSession struct {
	o     *owner
	log   *slog.Logger
	child *child
	p     protocol    // set once the handshake is done
	mute  atomic.Bool // the protocol has no requests of the server's to answer

	jobs      chan *job      // to the writer
	responses chan []byte    // answers to the server's own requests
	dead      chan struct{}  // closed once the process is gone and its output has been read
	answered  atomic.Bool    // it has answered a call
	writing   atomic.Int64   // since when the writer is at work, in Unix nanoseconds; 0: it is not
	parts     sync.WaitGroup // goroutines of this session

	mu      sync.Mutex
	ending  string // why the session takes no more calls; "" while it does
	deaf    bool   // it takes no more input: the reason follows
	pending map[int64]*pending
	odd     string // the last line that was of no use
	oddAt   time.Time
}

const (
	// patience is how long a server must have been silent, or deaf, before it is replaced for that alone.
	patience = time.Second
	// maxAbandoned bounds the abandoned looks whose late replies are still wanted.
	maxAbandoned = 1000
)

// job is one line to be written.
type job struct {
	gate *gate
	line []byte
	done chan error
}

// pending is a request without a reply.
type pending struct {
	got       chan message
	received  time.Time
	callID    string
	mutation  bool
	abandoned bool
	gate      *gate
	kill      *time.Timer
}

// openStdio starts the server and shakes hands with it. legacyFirst: the server was of the handshake era when last seen.
func openStdio(ctx context.Context, o *owner, legacyFirst bool) (session, protocol, error) {
	s, err := startStdio(o)
	if err != nil {
		return nil, protocol{}, failed("%s: %s", o.ref.Name, err)
	}
	hands := handshake{link: s, info: o.pool.options.ClientInfo, probe: o.pool.options.DiscoverTimeout, legacyFirst: legacyFirst}
	s.p, err = hands.open(ctx)
	if err != nil && !legacyFirst && s.gone() && ctx.Err() == nil {
		// Some old servers exit at anything before initialize, the probe included.
		s.close()
		return openStdio(ctx, o, true)
	}
	if err != nil {
		s.end("the handshake failed")
		s.close()
		return nil, protocol{}, err
	}
	s.mute.Store(s.p.modern)
	return s, s.p, nil
}

func startStdio(o *owner) (*stdioSession, error) {
	secrets := o.secrets()
	c, err := startChild(o.server, secrets)
	if err != nil {
		return nil, errors.New(secrets.scrubber().Replace(err.Error()))
	}
	s := &stdioSession{
		o: o, log: o.log, child: c,
		jobs: make(chan *job), responses: make(chan []byte, 64), dead: make(chan struct{}),
		pending: map[int64]*pending{},
	}
	var copyTo io.Writer
	if o.pool.options.Stderr != nil {
		copyTo = o.pool.options.Stderr(o.ref.Name)
	}
	read := make(chan struct{})
	s.parts.Go(func() { c.logStderr(s.log, copyTo) })
	s.parts.Go(func() { defer close(read); s.readLines() })
	s.parts.Go(s.writeJobs)
	s.parts.Go(s.writeResponses)
	s.parts.Go(func() {
		<-c.process.Done()
		c.drained(read)
		s.mu.Lock()
		if s.ending == "" {
			s.ending = "the server exited: " + c.exit()
		}
		s.mu.Unlock()
		close(s.dead)
	})
	return s, nil
}

// exchange is one request over the session.
type exchange struct {
	id       int64
	line     []byte
	callID   string
	deadline time.Time
	keep     bool // silence is no reason to replace the server
}

func (s *stdioSession) call(ctx context.Context, c Call) (Reply, bool) {
	params, err := c.params()
	if err != nil {
		return nothing("nothing was sent: %s", err), false
	}
	meta, err := c.meta()
	if err != nil {
		return nothing("nothing was sent: %s", err), false
	}
	id := s.o.pool.nextID()
	body := encodeParams(params, s.p.meta(meta, s.o.pool.options.ClientInfo))
	return s.exchange(ctx, exchange{
		id: id, line: encodeRequest(id, "tools/call", body), callID: c.ID, deadline: c.WriteDeadline,
	})
}

// exchange writes a request and waits for its reply. The second result tells that the session was of no use, nothing
// was written, and another session may be tried.
func (s *stdioSession) exchange(ctx context.Context, x exchange) (Reply, bool) {
	g := newGate(ctx, x.deadline, s.o.pool.now)
	p := &pending{got: make(chan message, 1), callID: x.callID, mutation: !x.deadline.IsZero(), gate: g}
	s.mu.Lock()
	if s.ending != "" || s.deaf {
		defer s.mu.Unlock()
		return nothing("nothing was sent: the server takes no input any more"), true
	}
	s.pending[x.id] = p
	s.mu.Unlock()

	expired, release := g.expired()
	defer release()
	j := &job{gate: g, line: append(x.line, '\n'), done: make(chan error, 1)}
	jobs, written := s.jobs, chan error(nil)
	for {
		select {
		case jobs <- j:
			jobs, written = nil, j.done
		case err := <-written:
			written = nil
			if err == nil {
				g.complete()
				continue
			}
			if r, again, over := s.notWritten(x, p, err); over {
				return r, again
			}
		case m := <-p.got:
			return s.answer(p, m), false
		case <-expired:
			expired = nil
			if g.shutUnused(errPastDeadline) {
				return s.unused(x, p, ctx)
			}
		case <-ctx.Done():
			return s.abandon(ctx, x, p), false
		case <-s.dead:
			return s.died(x, p)
		}
	}
}

// notWritten judges a failed write. It is not over where the whole session is about to end for it.
func (s *stdioSession) notWritten(x exchange, p *pending, err error) (r Reply, again, over bool) {
	if p.gate.shut(err) != contract.NotWritten {
		return Reply{}, false, false // the writer has ended the session: died says the rest
	}
	s.forget(x.id)
	if errors.Is(err, errPastDeadline) || errors.Is(err, errGone) {
		return nothing("nothing was sent: %s", err), false, true
	}
	return nothing("nothing was sent: the server takes no input any more"), true, true
}

// unused ends a call that could not write its first byte in time.
func (s *stdioSession) unused(x exchange, p *pending, ctx context.Context) (Reply, bool) {
	s.forget(x.id)
	if since := s.writing.Load(); since != 0 && s.o.pool.now().Sub(time.Unix(0, since)) >= patience {
		s.replaceIfIdle(x, "it did not read its input")
	}
	return nothing("nothing was sent: %s", s.refusal(p.gate, ctx)), false
}

func (s *stdioSession) refusal(g *gate, ctx context.Context) string {
	if why := g.refused(); errors.Is(why, errPastDeadline) {
		return why.Error()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "the caller's time ran out"
	}
	return errGone.Error()
}

func (s *stdioSession) answer(p *pending, m message) Reply {
	p.gate.shut(errGone)
	s.answered.Store(true)
	return Reply{
		Written: contract.Answered, Result: m.result, Error: m.err, Why: whyAnswered(m),
		Sent: p.gate.sentAt(), Received: p.received,
	}
}

func whyAnswered(m message) string {
	if m.err != nil {
		return fmt.Sprintf("the server answered with error %d", m.err.Code)
	}
	return "the server answered"
}

// abandon ends a call whose caller has stopped waiting. A child that may still come to read the request of a mutation
// is killed, once nothing may be written for it any more.
func (s *stdioSession) abandon(ctx context.Context, x exchange, p *pending) Reply {
	s.mu.Lock()
	select {
	case m := <-p.got:
		s.mu.Unlock()
		return s.answer(p, m)
	default:
	}
	w := p.gate.shut(errGone)
	if w == contract.NotWritten {
		s.mu.Unlock()
		r, _ := s.unused(x, p, ctx)
		return r
	}
	p.abandoned = true
	odd := ""
	if !s.oddAt.Before(p.gate.sentAt()) {
		odd = s.odd
	}
	left := x.deadline.Round(0).Sub(s.o.pool.now())
	if p.mutation && left > 0 {
		p.kill = time.AfterFunc(left, func() { s.killUnanswered(x.id) })
	}
	if !p.mutation && (p.callID == "" || len(s.pending) > maxAbandoned) {
		delete(s.pending, x.id)
	}
	s.mu.Unlock()

	why := "no answer came before the caller stopped waiting"
	if odd != "" {
		why += ", though the server wrote " + odd
	}
	switch {
	case w == contract.MaybeWritten:
		why += "; only a part of the request was written, so the server was killed"
		s.end("it was left with half a request")
	case p.mutation && left <= 0:
		why += "; the server was killed, so that it cannot act on the request later"
		s.end("it left a call unanswered past its write deadline")
	case p.mutation:
		why += "; the server is killed if it has not answered by the write deadline"
	default:
		waited := s.o.pool.now().Sub(p.gate.sentAt())
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && waited >= patience {
			s.replaceIfIdle(x, "it left a request unanswered")
		}
	}
	return Reply{Written: w, Why: why, Sent: p.gate.sentAt()}
}

// died ends a call whose process is gone.
func (s *stdioSession) died(x exchange, p *pending) (Reply, bool) {
	select {
	case m := <-p.got:
		return s.answer(p, m), false
	default:
	}
	s.forget(x.id)
	why := s.why()
	w := p.gate.shut(errGone)
	if w == contract.NotWritten {
		if err := p.gate.refused(); errors.Is(err, errPastDeadline) {
			return nothing("nothing was sent: %s", err), false
		}
		return nothing("nothing was sent: %s", why), true
	}
	return Reply{Written: w, Why: "no answer came: " + why, Sent: p.gate.sentAt()}, false
}

func (s *stdioSession) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
}

func (s *stdioSession) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// killUnanswered ends the server if the abandoned call is still without a reply.
func (s *stdioSession) killUnanswered(id int64) {
	s.mu.Lock()
	_, open := s.pending[id]
	s.mu.Unlock()
	if open {
		s.end("it left a call unanswered past its write deadline")
	}
}

// replaceIfIdle ends a server that does not answer, unless a call that somebody waits for is in flight on it.
func (s *stdioSession) replaceIfIdle(x exchange, why string) {
	if x.keep {
		return
	}
	s.mu.Lock()
	busy := false
	for id, p := range s.pending {
		busy = busy || id != x.id && (!p.abandoned || p.mutation)
	}
	s.mu.Unlock()
	if !busy {
		s.end(why)
	}
}

// end kills the server. why completes "the server was killed: …".
func (s *stdioSession) end(why string) {
	s.takeNoMore("the server was killed: " + why)
	s.child.kill()
}

// takeNoMore makes the owner open another session. The first reason stays.
func (s *stdioSession) takeNoMore(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == "" {
		s.ending = why
		s.log.Warn(why)
	}
}

func (s *stdioSession) gone() bool {
	select {
	case <-s.child.process.Done():
		return true
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaf || s.ending != ""
}

func (s *stdioSession) proven() bool { return s.answered.Load() }

// retire closes the session: once it is gone, nothing in flight has a future.
func (s *stdioSession) retire() { s.close() }

// close ends the server: in order where nothing is in flight, at once where a call might still be acted upon.
func (s *stdioSession) close() {
	s.mu.Lock()
	clean := s.ending == ""
	for _, p := range s.pending {
		clean = clean && !p.mutation
	}
	if s.ending == "" {
		s.ending = "this client is closing"
	}
	s.mu.Unlock()
	if clean {
		s.child.stop(time.Second)
	} else {
		s.child.kill()
	}
	s.parts.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.kill != nil {
			p.kill.Stop()
		}
	}
}

// writeJobs writes one line after another.
func (s *stdioSession) writeJobs() {
	for {
		select {
		case <-s.dead:
			return
		case j := <-s.jobs:
			s.writing.Store(s.o.pool.now().UnixNano())
			n, err := writeThrough(s.child.stdin, s.child.raw, j.gate, j.line, nil)
			s.writing.Store(0)
			switch {
			case err == nil:
			case n > 0:
				s.end("it was left with half a request")
			case !errors.Is(err, errPastDeadline) && !errors.Is(err, errGone):
				s.mu.Lock()
				s.deaf = true
				s.mu.Unlock()
				j.done <- err
				s.endUnlessExited("it closed its input")
				return
			}
			j.done <- err
		}
	}
}

// writeResponses answers the requests of a server of the handshake era.
func (s *stdioSession) writeResponses() {
	for {
		select {
		case <-s.dead:
			return
		case line := <-s.responses:
			j := &job{gate: newGate(context.Background(), time.Time{}, s.o.pool.now), line: append(line, '\n'), done: make(chan error, 1)}
			select {
			case s.jobs <- j:
			case <-s.dead:
				return
			}
		}
	}
}

// readLines hands out what the server writes until its output ends.
func (s *stdioSession) readLines() {
	r := bufio.NewReaderSize(s.child.stdout, 64<<10)
	for {
		line, err := readLine(r, s.o.pool.options.MaxMessage)
		if len(bytes.TrimSpace(line)) > 0 {
			s.take(line)
		}
		switch {
		case err == nil:
		case errors.Is(err, errTooLarge):
			s.end(fmt.Sprintf("it wrote a message of more than %d bytes", s.o.pool.options.MaxMessage))
			_, _ = io.Copy(io.Discard, r)
			return
		default:
			s.endUnlessExited("it closed its output")
			return
		}
	}
}

// endUnlessExited gives a server that has closed a pipe a moment to exit by itself, so that its exit status is known.
func (s *stdioSession) endUnlessExited(why string) {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-s.child.process.Done():
	case <-timer.C:
		s.end(why)
	}
}

func (s *stdioSession) take(line []byte) {
	messages, err := parseMessages(line)
	if err != nil {
		s.noise(fmt.Sprintf("a line that is no message (%s)", err), line)
		return
	}
	for _, m := range messages {
		switch {
		case m.isReply():
			s.deliver(m, line)
		case m.id != nil && !s.mute.Load():
			select {
			case s.responses <- encodeResponse(m):
			default:
				s.log.Warn("the server asks faster than it reads the answers: a request of its is left unanswered")
			}
		}
	}
}

// deliver hands a reply to the call that waits for it, or keeps it where the caller has gone.
func (s *stdioSession) deliver(m message, line []byte) {
	s.mu.Lock()
	id, _ := m.number()
	p := s.pending[id]
	if p == nil {
		s.mu.Unlock()
		s.noise("a reply with an id that no call waits for", line)
		return
	}
	delete(s.pending, id)
	p.received = s.o.pool.now()
	if !p.abandoned {
		p.got <- m
		s.mu.Unlock()
		return
	}
	if p.kill != nil {
		p.kill.Stop()
	}
	s.mu.Unlock()
	s.o.keepLate(p.callID, s.answer(p, m))
}

func (s *stdioSession) noise(what string, line []byte) {
	s.mu.Lock()
	s.odd, s.oddAt = what, s.o.pool.now()
	s.mu.Unlock()
	s.log.Info("the server wrote "+what, "line", s.child.scrub.Replace(clip(string(bytes.ToValidUTF8(line, []byte("\uFFFD"))), 200)))
}

// ask is link's.
func (s *stdioSession) ask(ctx context.Context, p protocol, method string, params ...member) (message, error) {
	id := s.o.pool.nextID()
	body := encodeParams(params, p.meta(nil, s.o.pool.options.ClientInfo))
	r, _ := s.exchange(ctx, exchange{id: id, line: encodeRequest(id, method, body), keep: method != "tools/list"})
	if r.Written != contract.Answered {
		return message{}, &connectError{why: fmt.Sprintf("%s got no answer from %s: %s", method, s.o.ref.Name, r.Why), down: s.gone()}
	}
	return message{result: r.Result, err: r.Error}, nil
}

// tell is link's.
func (s *stdioSession) tell(ctx context.Context, _ protocol, method string) error {
	j := &job{gate: newGate(ctx, time.Time{}, s.o.pool.now), line: append(encodeRequest(0, method, nil), '\n'), done: make(chan error, 1)}
	var err error
	select {
	case s.jobs <- j:
		select {
		case err = <-j.done:
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.dead:
			err = errors.New(s.why())
		}
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.dead:
		err = errors.New(s.why())
	}
	if err != nil {
		return failed("%s could not be told %s: %s", s.o.ref.Name, method, err)
	}
	return nil
}

func (s *stdioSession) tools(ctx context.Context) ([]Tool, error) { return listTools(ctx, s, s.p) }

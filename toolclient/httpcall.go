package toolclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

// httpCall is one tools/call in flight. Its exchange outlives the caller where the reply is still worth knowing.
type httpCall struct {
	s      *httpSession
	id     string
	gate   *gate
	cancel context.CancelFunc

	mu        sync.Mutex
	result    *Reply
	again     bool
	abandoned bool
	linger    *time.Timer
	done      chan struct{} // closed with result
}

func (s *httpSession) call(ctx context.Context, c Call) (Reply, bool) {
	params, err := c.params()
	if err != nil {
		return nothing("nothing was sent: %s", err), false
	}
	meta, err := c.meta()
	if err != nil {
		return nothing("nothing was sent: %s", err), false
	}
	if err := s.check(ctx, c.WriteDeadline); err != nil {
		return nothing("nothing was sent: %s", err), true
	}
	id := s.o.pool.nextID()
	body := encodeParams(params, s.p.meta(meta, s.o.pool.options.ClientInfo))
	exchange, cancel := context.WithCancel(s.ctx)
	x := &httpCall{s: s, id: c.ID, gate: newGate(ctx, c.WriteDeadline, s.o.pool.now), cancel: cancel, done: make(chan struct{})}
	out := outgoing{
		p: s.p, rpc: "tools/call", tool: c.Tool, id: id, gate: x.gate,
		body: encodeRequest(id, "tools/call", body), more: s.mirror(c.Tool, body),
	}
	if !s.background(func() { x.run(exchange, out) }) {
		cancel()
		return nothing("nothing was sent: %s", ErrClosed), false
	}
	return x.wait(ctx)
}

// run makes the exchange and hands its result to the caller, or to those who ask later.
func (x *httpCall) run(ctx context.Context, out outgoing) {
	x.s.count(+1)
	in, reused, err := x.s.fetch(ctx, out)
	r, again := x.conclude(ctx, in, reused, err)
	x.s.count(-1)

	x.mu.Lock()
	late := x.abandoned
	x.result, x.again = &r, again
	if x.linger != nil {
		x.linger.Stop()
		x.s.lingering.Add(-1)
	}
	x.mu.Unlock()
	close(x.done)
	if late && r.Written == contract.Answered {
		x.s.o.keepLate(x.id, r)
	}
	if in.finish != nil {
		in.finish()
	}
	x.cancel()
}

// wait waits for the result as long as the caller does.
func (x *httpCall) wait(ctx context.Context) (Reply, bool) {
	expired, release := x.gate.expired()
	defer release()
	for {
		select {
		case <-x.done:
			return *x.result, x.again
		case <-expired:
			expired = nil
			if x.gate.shutUnused(errPastDeadline) {
				return x.abandon(ctx)
			}
		case <-ctx.Done():
			return x.abandon(ctx)
		}
	}
}

// abandon says what is known when the caller stops waiting. The exchange goes on where that may tell more and cannot
// do harm: the whole request has arrived at the peer.
func (x *httpCall) abandon(ctx context.Context) (Reply, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.result != nil {
		return *x.result, x.again && ctx.Err() == nil
	}
	x.abandoned = true
	w := x.gate.shut(errGone)
	if w == contract.NotWritten {
		x.cancel()
		return nothing("nothing was sent: %s", x.gate.refused()), false
	}
	r := Reply{Written: w, Sent: x.gate.sentAt()}
	linger := x.s.o.pool.options.Linger
	switch {
	case w == contract.FullyWritten && linger > 0 && !x.gate.undelivered() && x.s.lingering.Load() < maxLingering:
		x.s.lingering.Add(1)
		x.linger = time.AfterFunc(linger, x.cancel)
		r.Why = fmt.Sprintf("no answer came before the caller stopped waiting; one that comes within %s is kept", linger)
	case w == contract.FullyWritten:
		x.cancel()
		r.Why = "no answer came before the caller stopped waiting; the connection was closed"
	default:
		x.cancel()
		r.Why = "only a part of the request was written before the caller stopped waiting; the connection was closed"
	}
	return r, false
}

// undelivered tells whether the peer has not acknowledged all that was written.
func (g *gate) undelivered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn == nil || g.conn.unsent()
}

// conclude makes the reply from what the exchange showed.
func (x *httpCall) conclude(ctx context.Context, in incoming, reused bool, err error) (Reply, bool) {
	w := x.gate.shut(errGone)
	r := Reply{
		Written: w, HTTPStatus: in.status, RetryAfter: in.retryAfter,
		Sent: x.gate.sentAt(), Received: in.received,
	}
	if err != nil {
		return x.broken(ctx, r, reused, err)
	}
	x.s.judge(in)
	if in.reply != nil {
		x.s.answered.Store(true)
		r.Written, r.Result, r.Error, r.Why = contract.Answered, in.reply.result, in.reply.err, whyAnswered(*in.reply)
		return r, false
	}
	r.Error = in.anonymous
	r.Why = "no answer came: " + in.why
	if in.status/100 != 2 {
		r.Why = in.why
	}
	if w == contract.NotWritten { // a server that answers a connection without having been asked anything
		x.s.losses.Add(1)
		r.Why = "nothing was sent: " + in.why
	}
	return r, false
}

// broken makes the reply of an exchange that ended without any response.
func (x *httpCall) broken(ctx context.Context, r Reply, reused bool, err error) (Reply, bool) {
	x.s.losses.Add(1)
	why := err.Error()
	if ctx.Err() != nil {
		why = "the session was closed"
	}
	if r.Written != contract.NotWritten {
		r.Why = "no answer came: " + why
		return r, false
	}
	if refused := x.gate.refused(); errors.Is(refused, errPastDeadline) {
		why = refused.Error()
		reused = false
	}
	if x.gate.ctx.Err() == nil && ctx.Err() == nil {
		x.s.lose(why)
	}
	r.Why = "nothing was sent: " + why
	return r, reused
}

func (s *httpSession) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
}

package toolclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

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
				return s.unused(ctx, x, p)
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
func (s *stdioSession) unused(ctx context.Context, x exchange, p *pending) (Reply, bool) {
	s.forget(x.id)
	if since := s.writing.Load(); since != 0 && s.o.pool.now().Sub(time.Unix(0, since)) >= patience {
		s.replaceIfIdle(x, "it did not read its input")
	}
	return nothing("nothing was sent: %s", s.refusal(ctx, p.gate)), false
}

func (s *stdioSession) refusal(ctx context.Context, g *gate) string {
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
		r, _ := s.unused(ctx, x, p)
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

package toolclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

var (
	errPastDeadline = errors.New("the call is past its write deadline")
	errGone         = errors.New("the caller stopped waiting")
)

// gate decides, for one request, whether its next bytes may still be written, and counts those that were. The check,
// the write and the count are one step under its lock: after shut, the count is final.
type gate struct {
	ctx      context.Context // the caller's
	deadline time.Time       // zero: none
	now      func() time.Time

	mu      sync.Mutex
	refusal error // set once: nothing more may be written
	begun   bool  // bytes may have left
	whole   bool
	done    chan struct{} // closed when whole
	sent    time.Time
	conn    *conn // the HTTP connection that carries the request

	// Where the request ends, for writes of HTTP in the clear.
	headEnd int // how much of the empty line that ends the head has just been written
	inBody  bool
	body    int // bytes of the body not yet written
}

func newGate(ctx context.Context, deadline time.Time, now func() time.Time) *gate {
	return &gate{ctx: ctx, deadline: deadline.Round(0), now: now, done: make(chan struct{})}
}

// pass says whether bytes may be written now. The lock is held.
func (g *gate) pass() error {
	if g.refusal != nil {
		return g.refusal
	}
	if g.ctx.Err() != nil {
		g.refusal = errGone
	} else if !g.deadline.IsZero() && g.now().After(g.deadline) {
		g.refusal = errPastDeadline
	}
	return g.refusal
}

// try runs write, which must not block, if bytes may be written now. wrote, unless nil, learns how many were.
func (g *gate) try(write func() (int, error), wrote func(n int)) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.pass(); err != nil {
		return 0, err
	}
	at := g.now()
	n, err := write()
	if n > 0 {
		g.begin(at)
		if wrote != nil {
			wrote(n)
		}
	}
	return n, err
}

func (g *gate) begin(at time.Time) {
	if !g.begun {
		g.begun, g.sent = true, at
	}
}

// countdown is what a write of size bytes calls, under the lock, with what it has written: the last byte ends the request.
func (g *gate) countdown(size int) func([]byte) {
	return func(p []byte) {
		if size -= len(p); size == 0 {
			g.finish()
		}
	}
}

// finish notes that the whole request was written. The lock is held.
func (g *gate) finish() {
	if g.begun && !g.whole {
		g.whole = true
		close(g.done)
	}
}

// follow reads along in what has been written of an HTTP/1.1 request and notices its end. The lock is held.
func (g *gate) follow(p []byte) {
	const end = "\r\n\r\n"
	for i, c := range p {
		switch {
		case g.inBody:
			g.body -= len(p) - i
			if g.body <= 0 {
				g.finish()
			}
			return
		case c == end[g.headEnd]:
			g.headEnd++
		case c == end[0]:
			g.headEnd = 1
		default:
			g.headEnd = 0
		}
		if g.headEnd == len(end) {
			g.inBody = true
			if g.body <= 0 {
				g.finish()
			}
		}
	}
}

// followed is follow for bytes that went through another gate below, as those under TLS do.
func (g *gate) followed(p []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.follow(p)
}

// awaitWhole waits a moment for the write that is about to be noted as the last one.
func (g *gate) awaitWhole() {
	if g.shutUnused(errGone) {
		return
	}
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-g.done:
	case <-timer.C:
	}
}

// carriedBy notes the connection that carries the request. One that cannot be watched counts as written to.
func (g *gate) carriedBy(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn = c
	if c == nil {
		g.begin(g.now())
	}
}

// shut ends all writing and says how far it got.
func (g *gate) shut(why error) contract.Written {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusal == nil {
		g.refusal = why
	}
	return g.progress()
}

// shutUnused shuts the gate if nothing has been written, and says whether it did.
func (g *gate) shutUnused(why error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun {
		return false
	}
	if g.refusal == nil {
		g.refusal = why
	}
	return true
}

func (g *gate) progress() contract.Written {
	switch {
	case g.whole:
		return contract.FullyWritten
	case g.begun:
		return contract.MaybeWritten
	}
	return contract.NotWritten
}

// refused is why nothing more may be written, or nil.
func (g *gate) refused() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal
}

func (g *gate) sentAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// expired is a channel that delivers once the write deadline has passed, and a function that releases it. Without a
// deadline it never delivers.
func (g *gate) expired() (<-chan time.Time, func()) {
	if g.deadline.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(g.deadline.Sub(g.now()))
	return timer.C, func() { timer.Stop() }
}

// wallClock is the time by the wall clock alone: a process that was frozen sees that time has passed.
func wallClock() time.Time { return time.Now().Round(0) }

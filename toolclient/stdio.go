package toolclient

import (
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

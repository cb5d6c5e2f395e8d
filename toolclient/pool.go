package toolclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

// Errors of Add and Tools.
var (
	// ErrUnknownServer: the pool has no server of that name and identity.
	ErrUnknownServer = errors.New("unknown server")
	// ErrClosed: the pool was closed.
	ErrClosed = errors.New("the pool of sessions is closed")
)

// Options of a Pool. The zero value works.
type Options struct {
	// Logger gets what servers write to stderr, noise on their stdout, and what happens to sessions. Default:
	// slog.Default().
	Logger *slog.Logger
	// Stderr returns where a stdio server's error output is copied to, line by line and with secrets removed; nil for
	// nowhere. Its Write should not block: the server waits for it.
	Stderr func(server string) io.Writer
	// Secret looks up the value for ${secret:NAME}. Default: os.LookupEnv.
	Secret func(name string) (string, bool)
	// ClientInfo is how this program introduces itself. Default: mcpx.
	ClientInfo ClientInfo

	// ConnectTimeout bounds the opening of a session, the start of a stdio server included. Default: 60 s.
	ConnectTimeout time.Duration
	// DiscoverTimeout is how long a server may be silent about server/discover before it is taken for one of the
	// handshake era. Default: 3 s.
	DiscoverTimeout time.Duration
	// Linger is how long the reply of an HTTP call is still waited for after its caller has gone. Default: 30 s;
	// negative: not at all.
	Linger time.Duration
	// MaxMessage bounds one message of a server, in bytes. Default: 256 MiB.
	MaxMessage int
	// LateReplies and LateBytes bound what is kept for Pool.Late, for each server. Default: 256 replies, 32 MiB.
	LateReplies, LateBytes int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Secret == nil {
		o.Secret = os.LookupEnv
	}
	if o.ClientInfo.Name == "" {
		o.ClientInfo.Name = "mcpx"
	}
	if o.ClientInfo.Version == "" {
		o.ClientInfo.Version = "0"
	}
	setDefault(&o.ConnectTimeout, 60*time.Second)
	setDefault(&o.DiscoverTimeout, 3*time.Second)
	setDefault(&o.Linger, 30*time.Second)
	setDefault(&o.MaxMessage, 256<<20)
	setDefault(&o.LateReplies, 256)
	setDefault(&o.LateBytes, 32<<20)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Pool keeps one session for each of its servers: opened when first needed, shared by concurrent calls, opened anew
// when it has died. Its methods may be called from any goroutine.
type Pool struct {
	options Options
	now     func() time.Time
	trust   *tls.Config // for HTTPS
	ids     atomic.Int64
	ctx     context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex
	closed bool
	owners map[contract.ServerRef]*owner
	work   sync.WaitGroup
}

// NewPool makes an empty pool.
func NewPool(o Options) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{
		options: o.withDefaults(), now: wallClock, trust: &tls.Config{MinVersion: tls.VersionTLS12}, ctx: ctx, cancel: cancel,
		owners: map[contract.ServerRef]*owner{},
	}
}

// Add makes a server known. It is neither started nor connected to. Servers of the same name and different identity may
// live beside each other; adding one that is there already, with the same definition, changes nothing. The error says
// what is wrong with the definition.
func (p *Pool) Add(s contract.Server) error {
	o, err := newOwner(p, s)
	if err != nil {
		return fmt.Errorf("server %q: %w", s.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if old, ok := p.owners[o.ref]; ok {
		if old.sameAs(o) {
			return nil
		}
		return fmt.Errorf("server %q is in the pool with another definition: make a new pool for the new one", s.Name)
	}
	p.owners[o.ref] = o
	return nil
}

// Call sends one tools/call to the server, at most once, and returns when its reply is there or ctx ends. Only a session
// that turns out to be of no use before anything was written is replaced by a new one.
func (p *Pool) Call(ctx context.Context, ref contract.ServerRef, c Call) Reply {
	o, err := p.find(ref)
	if err != nil {
		return nothing("nothing was sent: %s", err)
	}
	c.WriteDeadline = c.WriteDeadline.Round(0)
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return nothing("nothing was sent: %s", errGone)
		}
		if !c.WriteDeadline.IsZero() && p.now().After(c.WriteDeadline) {
			return nothing("nothing was sent: %s", errPastDeadline)
		}
		s, err := o.session(ctx, c.WriteDeadline)
		if err != nil {
			return o.unreachable(err)
		}
		if r, again := s.call(ctx, c); !again || !first {
			return r
		}
	}
}

// Tools lists the tools of a server, all pages of it. The error is ErrUnknownServer, or says why the server could not be
// asked.
func (p *Pool) Tools(ctx context.Context, ref contract.ServerRef) ([]Tool, error) {
	o, err := p.find(ref)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		s, err := o.session(ctx, time.Time{})
		if err != nil {
			return nil, fmt.Errorf("list the tools of %s: %w", ref.Name, err)
		}
		tools, err := s.tools(ctx)
		if err == nil {
			return tools, nil
		}
		if !first || !s.gone() || ctx.Err() != nil {
			return nil, fmt.Errorf("list the tools of %s: %w", ref.Name, err)
		}
	}
}

// Late returns the reply of a call that came after its caller had stopped waiting. It stays available until newer ones
// take its place.
func (p *Pool) Late(ref contract.ServerRef, id string) (Reply, bool) {
	p.mu.Lock()
	o := p.owners[ref]
	p.mu.Unlock()
	if o == nil {
		return Reply{}, false
	}
	return o.late.get(id)
}

// Close ends every session. Calls in flight return what is known of them. Servers in the middle of a call are killed,
// the others get a moment to end by themselves.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	owners := make([]*owner, 0, len(p.owners))
	for _, o := range p.owners {
		owners = append(owners, o)
	}
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, o := range owners {
		closing.Go(o.close)
	}
	closing.Wait()
	p.cancel()
	p.work.Wait()
	return nil
}

func (p *Pool) find(ref contract.ServerRef) (*owner, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if o, ok := p.owners[ref]; ok {
		return o, nil
	}
	for known := range p.owners {
		if known.Name == ref.Name {
			return nil, fmt.Errorf("%w: %s is %s here, not %s: its definition is another one", ErrUnknownServer, ref.Name, known.ID, ref.ID)
		}
	}
	return nil, fmt.Errorf("%w: there is no %s here", ErrUnknownServer, ref)
}

// background runs f in a goroutine that Close waits for. It does nothing, and says so, once the pool is closed.
func (p *Pool) background(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Go(f)
	return true
}

func (p *Pool) nextID() int64 { return p.ids.Add(1) }

//go:build unix

package toolclient

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
)

func TestStdioReplySaysWhatThePeerDid(t *testing.T) {
	const short, long = 1200 * time.Millisecond, wait
	tests := []struct {
		script  string
		timeout time.Duration
		written contract.Written
		why     string
		calls   int // requests that the server read
	}{
		{"answers", long, contract.Answered, "the server answered", 1},
		{"answers and exits", long, contract.Answered, "the server answered", 1},
		{"answers without newline and exits", long, contract.Answered, "the server answered", 1},
		{"noise and CRLF", long, contract.Answered, "the server answered", 1},
		{"floods stderr", long, contract.Answered, "the server answered", 1},
		{"batch", long, contract.Answered, "the server answered", 1},
		{"sloppy id", long, contract.Answered, "the server answered", 1},
		{"asks", long, contract.Answered, "the server answered", 1},
		{`error {"code":-32602,"message":"bad"}`, long, contract.Answered, "answered with error -32602", 1},

		{"exits after reading", long, contract.FullyWritten, `exit status 3, last stderr line "committed, then panic"`, 1},
		{"closes its output", long, contract.FullyWritten, "it closed its output", 1},
		{"too large", long, contract.FullyWritten, "it wrote a message of more than 1048576 bytes", 1},
		{"wrong id", short, contract.FullyWritten, "a reply with an id that no call waits for", 1},
		{"garbage", short, contract.FullyWritten, "a line that is no message (it is not JSON)", 1},
		{"truncated", short, contract.FullyWritten, "a line that is no message (it ends in the middle of the JSON)", 1},
		{"hangs", short, contract.FullyWritten, "no answer came before the caller stopped waiting; the server was killed", 1},

		{"exits at once", long, contract.NotWritten, `exit status 4, last stderr line "cannot start: no database"`, 0},
	}
	for _, era := range []string{"modern", "legacy"} {
		for _, test := range tests {
			t.Run(era+"/"+test.script, func(t *testing.T) {
				t.Parallel()
				s := newScripted(t, test.script, era)
				p, _ := newPool(t, Options{MaxMessage: 1 << 20}, s.server())
				if test.calls > 0 {
					open(t, p, s.server().Ref())
				}
				r := p.Call(within(t, test.timeout), s.server().Ref(), mutation(test.timeout-100*time.Millisecond))
				require.Equal(t, test.written, r.Written, r.Why)
				require.Contains(t, r.Why, test.why)
				require.Len(t, s.lines("calls"), test.calls, "deliveries")
				require.Equal(t, test.written == contract.NotWritten, r.Sent.IsZero())
				require.Equal(t, test.written == contract.Answered, !r.Received.IsZero())
				if test.written == contract.FullyWritten {
					proctest.RequireGone(t, s.pids(t)...)
				}
			})
		}
	}
}

func TestBlockedInputIsNotWrittenOrHalfWritten(t *testing.T) {
	big := func(id string) Call {
		c := mutation(1500 * time.Millisecond)
		c.ID, c.Args = id, json.RawMessage(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
		return c
	}
	s := newScripted(t, "stops reading", "modern")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	require.Equal(t, contract.Answered, p.Call(within(t, wait), ref, mutation(wait)).Written)

	var calls sync.WaitGroup
	replies := make([]Reply, 2)
	for i := range replies {
		calls.Go(func() { replies[i] = p.Call(within(t, 1700*time.Millisecond), ref, big("")) })
	}
	calls.Wait()
	if replies[0].Written == contract.NotWritten {
		replies[0], replies[1] = replies[1], replies[0]
	}
	require.Equal(t, contract.MaybeWritten, replies[0].Written, replies[0].Why)
	require.Contains(t, replies[0].Why, "only a part of the request was written")
	require.Equal(t, contract.NotWritten, replies[1].Written, replies[1].Why)
	proctest.RequireGone(t, s.pids(t)[0])
	require.Len(t, s.lines("calls"), 1)
	require.Empty(t, s.lines("broken"), "half a request was read")
}

func TestLookThatCannotBeWrittenReplacesADeafServer(t *testing.T) {
	s := newScripted(t, "stops reading", "modern")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	require.Equal(t, contract.Answered, p.Call(within(t, wait), ref, mutation(wait)).Written)
	pid := s.pids(t)[0]

	const pipe = 64 << 10 // what a pipe holds on Linux
	line := func(text int) int {
		c := Call{Tool: "get", Args: json.RawMessage(`{"text":"` + strings.Repeat("x", text) + `"}`)}
		params, err := c.params()
		require.NoError(t, err)
		o, err := p.find(ref)
		require.NoError(t, err)
		meta := o.current.(*stdioSession).p.meta(nil, p.options.ClientInfo)
		return len(encodeRequest(p.ids.Load()+1, "tools/call", encodeParams(params, meta))) + 1
	}
	full := Call{Tool: "get", Args: json.RawMessage(`{"text":"` + strings.Repeat("x", pipe-line(0)) + `"}`)}
	r := p.Call(within(t, 100*time.Millisecond), ref, full)
	require.Equal(t, contract.FullyWritten, r.Written, r.Why)

	r = p.Call(within(t, 100*time.Millisecond), ref, Call{Tool: "get"})
	require.Equal(t, contract.NotWritten, r.Written, r.Why)
	require.Contains(t, r.Why, "the caller's time ran out")
	require.False(t, proctest.Gone(pid), "an impatient look is no reason")
	r = p.Call(within(t, patience+200*time.Millisecond), ref, Call{Tool: "get"})
	require.Equal(t, contract.NotWritten, r.Written, r.Why)
	proctest.RequireGone(t, pid)
	require.Len(t, s.lines("calls"), 1)
}

func TestDeafServerIsReplaced(t *testing.T) {
	s := newScripted(t, "closes its input", "legacy")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	for i := range 2 {
		r := p.Call(within(t, wait), ref, mutation(wait))
		require.Equal(t, contract.Answered, r.Written, r.Why)
		require.Len(t, s.lines("pids"), i+1, "nothing was written to the deaf one, so the call goes to a new one")
		require.Len(t, s.lines("calls"), i+1)
	}
}

func TestNothingIsWrittenPastTheDeadline(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		s := newScripted(t, "answers", era)
		ref := s.server().Ref()
		p, _ := newPool(t, Options{}, s.server())
		clock := &freezer{}
		p.now = clock.now
		open(t, p, ref)

		t.Run(era+"/already past", func(t *testing.T) {
			r := p.Call(within(t, wait), ref, mutation(-time.Millisecond))
			require.Equal(t, contract.NotWritten, r.Written)
			require.Contains(t, r.Why, "past its write deadline")
		})
		t.Run(era+"/frozen between the first check and the write", func(t *testing.T) {
			clock.arm(1)
			defer clock.arm(0)
			r := p.Call(within(t, wait), ref, mutation(10*time.Second))
			require.Equal(t, contract.NotWritten, r.Written)
			require.Contains(t, r.Why, "past its write deadline")
		})
		t.Run(era+"/caller gone", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			r := p.Call(ctx, ref, mutation(wait))
			require.Equal(t, contract.NotWritten, r.Written)
		})
		require.Empty(t, s.lines("calls"))
	}
}

func TestUnansweredMutationKillsTheServerWithItsGroupOnceItsDeadlineIsPast(t *testing.T) {
	s := newScripted(t, "hangs with a child", "legacy")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	open(t, p, ref)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := make(chan Reply, 1)
	go func() { got <- p.Call(ctx, ref, mutation(800*time.Millisecond)) }()
	require.Eventually(t, func() bool { return len(s.lines("pids")) == 2 }, wait, tick)
	cancel()
	r := <-got
	require.Equal(t, contract.FullyWritten, r.Written)
	require.Contains(t, r.Why, "is killed if it has not answered by the write deadline")
	proctest.RequireGone(t, s.pids(t)...)
	require.Equal(t, contract.NotWritten, p.Call(ctx, ref, mutation(wait)).Written)
}

func TestOtherCallsOfAKilledServerAreUnknown(t *testing.T) {
	s := newScripted(t, "hangs", "modern")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	open(t, p, ref)
	other := make(chan Reply, 1)
	go func() { other <- p.Call(within(t, wait), ref, mutation(wait)) }()
	require.Eventually(t, func() bool { return len(s.lines("calls")) == 1 }, wait, tick)
	require.Equal(t, contract.FullyWritten, p.Call(within(t, 300*time.Millisecond), ref, mutation(200*time.Millisecond)).Written)
	r := <-other
	require.Equal(t, contract.FullyWritten, r.Written)
	require.Contains(t, r.Why, "the server was killed: it left a call unanswered past its write deadline")
}

func TestUnansweredLookKillsOnlyAnIdleSilentServer(t *testing.T) {
	look := Call{Tool: "get"}
	s := newScripted(t, "hangs", "modern")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	open(t, p, ref)
	pid := s.pids(t)[0]

	require.Equal(t, contract.FullyWritten, p.Call(within(t, 200*time.Millisecond), ref, look).Written)
	require.False(t, proctest.Gone(pid), "an impatient look is no reason")

	other := make(chan Reply, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { other <- p.Call(ctx, ref, Call{Tool: "get"}) }()
	require.Eventually(t, func() bool { return len(s.lines("calls")) == 2 }, wait, tick)
	require.Equal(t, contract.FullyWritten, p.Call(within(t, 1200*time.Millisecond), ref, look).Written)
	require.False(t, proctest.Gone(pid), "another call is in flight")
	cancel()
	require.Equal(t, contract.FullyWritten, (<-other).Written)

	require.Equal(t, contract.FullyWritten, p.Call(within(t, 1200*time.Millisecond), ref, look).Written)
	proctest.RequireGone(t, pid)
}

func TestLateReplyOverStdioIsKept(t *testing.T) {
	s := newScripted(t, "answers late", "modern")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{}, s.server())
	open(t, p, ref)
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan Reply, 1)
	go func() { got <- p.Call(ctx, ref, mutation(wait)) }()
	require.Eventually(t, func() bool { return len(s.lines("calls")) == 1 }, wait, tick)
	cancel()
	require.Equal(t, contract.FullyWritten, (<-got).Written)
	_, ok := p.Late(ref, "tx/step/1")
	require.False(t, ok)

	s.signal(t, "answer")
	var r Reply
	require.Eventually(t, func() bool { r, ok = p.Late(ref, "tx/step/1"); return ok }, wait, tick)
	require.Equal(t, contract.Answered, r.Written)
	require.JSONEq(t, done, string(r.Result))
	require.False(t, r.Received.IsZero())
	require.False(t, proctest.Gone(s.pids(t)[0]), "a server that has answered lives on")
}

func TestCrashedServerIsStartedAgain(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		s := newScripted(t, "crashes once", era)
		p, _ := newPool(t, Options{}, s.server())
		r := p.Call(within(t, wait), s.server().Ref(), mutation(wait))
		require.Equal(t, contract.FullyWritten, r.Written)
		require.Len(t, s.lines("calls"), 1, "the call is not sent again")
		r = p.Call(within(t, wait), s.server().Ref(), mutation(wait))
		require.Equal(t, contract.Answered, r.Written)
		require.Len(t, s.lines("calls"), 2)
	}
}

func TestEndOfTheFirstCallersTimeLeavesTheServerRunning(t *testing.T) {
	s := newScripted(t, "answers", "silent")
	ref := s.server().Ref()
	p, _ := newPool(t, Options{DiscoverTimeout: 700 * time.Millisecond}, s.server())
	r := p.Call(within(t, 100*time.Millisecond), ref, mutation(wait))
	require.Equal(t, contract.NotWritten, r.Written)
	require.Contains(t, r.Why, "the session was not open yet")
	r = p.Call(within(t, wait), ref, mutation(wait))
	require.Equal(t, contract.Answered, r.Written)
	require.Len(t, s.lines("pids"), 1)
}

func TestConcurrentCallsShareOneServerAndKeepTheirReplies(t *testing.T) {
	s := newScripted(t, "reverses", "legacy")
	p, _ := newPool(t, Options{}, s.server())
	var calls sync.WaitGroup
	replies := make([]Reply, 2)
	for i := range replies {
		calls.Go(func() { replies[i] = p.Call(within(t, wait), s.server().Ref(), mutation(wait)) })
	}
	calls.Wait()
	require.Len(t, s.lines("pids"), 1)
	require.Equal(t, contract.Answered, replies[0].Written)
	require.Equal(t, contract.Answered, replies[1].Written)
	require.NotEqual(t, string(replies[0].Result), string(replies[1].Result))
	require.ElementsMatch(t, []string{`{"of":` + s.lines("calls")[0] + `}`, `{"of":` + s.lines("calls")[1] + `}`},
		[]string{string(replies[0].Result), string(replies[1].Result)})
}

func TestCloseLetsAnIdleServerEndByItself(t *testing.T) {
	s := newScripted(t, "answers", "modern")
	p := NewPool(Options{})
	require.NoError(t, p.Add(s.server()))
	require.Equal(t, contract.Answered, p.Call(within(t, wait), s.server().Ref(), mutation(wait)).Written)
	require.NoError(t, p.Close())
	require.Equal(t, []string{"end of input"}, s.lines("ended"))
	proctest.RequireGone(t, s.pids(t)[0])
	r := p.Call(within(t, wait), s.server().Ref(), mutation(wait))
	require.Equal(t, contract.NotWritten, r.Written)
	require.Contains(t, r.Why, "closed")
	_, err := p.Tools(within(t, wait), s.server().Ref())
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, p.Add(s.server()), ErrClosed)
	require.NoError(t, p.Close())
}

func TestCloseKillsAServerThatDoesNotEnd(t *testing.T) {
	s := newScripted(t, "ignores everything", "modern")
	p := NewPool(Options{})
	require.NoError(t, p.Add(s.server()))
	require.Equal(t, contract.Answered, p.Call(within(t, wait), s.server().Ref(), mutation(wait)).Written)
	require.NoError(t, p.Close())
	proctest.RequireGone(t, s.pids(t)[0])
}

func TestCloseEndsCallsInFlight(t *testing.T) {
	s := newScripted(t, "hangs", "modern")
	p := NewPool(Options{})
	require.NoError(t, p.Add(s.server()))
	got := make(chan Reply, 1)
	go func() { got <- p.Call(within(t, wait), s.server().Ref(), mutation(wait)) }()
	require.Eventually(t, func() bool { return len(s.lines("calls")) == 1 }, wait, tick)
	require.NoError(t, p.Close())
	require.Equal(t, contract.FullyWritten, (<-got).Written)
}

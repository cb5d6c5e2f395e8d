//go:build unix

package toolclient

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
)

const awkward = `{"zeta":9007199254740993,"alpha":18446744073709551616.10,"e":1e400,"neg":-0,"t":"é\u00e9 <&> \u2028 \"\\ 日本","n":null,"nested":{"b":[1.0, {"a" : 2}],"a":{}}}`

const compactAwkward = `{"zeta":9007199254740993,"alpha":18446744073709551616.10,"e":1e400,"neg":-0,"t":"é\u00e9 <&> \u2028 \"\\ 日本","n":null,"nested":{"b":[1.0,{"a":2}],"a":{}}}`

func TestArgumentsReachTheWireAndResultsComeBackExactly(t *testing.T) {
	check := func(t *testing.T, r Reply, want string) {
		require.Equal(t, contract.Answered, r.Written, r.Why)
		require.Equal(t, want, string(r.Result))
		require.True(t, r.Complete())
	}
	c := mutation(wait)
	c.Args = json.RawMessage(awkward)
	for _, era := range []string{"modern", "legacy"} {
		t.Run("stdio/"+era, func(t *testing.T) {
			s := newScripted(t, "result "+awkward, era)
			p, _ := newPool(t, Options{}, s.server())
			check(t, p.Call(within(t, wait), s.server().Ref(), c), awkward)
			echo := newScripted(t, "echo", era)
			require.NoError(t, p.Add(echo.server()))
			r := p.Call(within(t, wait), echo.server().Ref(), c)
			require.True(t, strings.HasPrefix(string(r.Result), `{"arguments":`+compactAwkward+`,"meta":`), string(r.Result))
		})
		t.Run("http/"+era, func(t *testing.T) {
			var body []byte
			peer := newHTTPPeer(t, era, func(x *exchangeAt) {
				body = x.body
				x.json(200, "", `{"jsonrpc":"2.0","id":`+x.id+`,"result":`+awkward+`}`)
			})
			p, _ := newPool(t, Options{}, peer.server())
			check(t, p.Call(within(t, wait), peer.ref(), c), awkward)
			require.Contains(t, string(body), `"params":{"name":"create","arguments":`+compactAwkward)
		})
	}
}

func TestLargeMessagesArriveWhole(t *testing.T) {
	const wait = 3 * wait // the race detector makes long messages slow
	c := mutation(wait)
	c.Args = json.RawMessage(`{"text":"` + strings.Repeat("ü", 2<<20) + `"}`)
	t.Run("stdio", func(t *testing.T) {
		s := newScripted(t, "large", "legacy")
		p, _ := newPool(t, Options{}, s.server())
		r := p.Call(within(t, wait), s.server().Ref(), c)
		require.Equal(t, contract.Answered, r.Written, r.Why)
		require.Len(t, r.Result, len(`{"content":[],"text":""}`)+20<<20)
	})
	t.Run("http", func(t *testing.T) {
		for _, how := range []string{"json", "stream"} {
			peer := newHTTPPeer(t, "modern", func(x *exchangeAt) {
				text := `{"jsonrpc":"2.0","id":` + x.id + `,"result":{"text":"` + strings.Repeat("é", 10<<20) + `"}}`
				if how == "json" {
					x.json(200, "", text)
				} else {
					x.stream("data: " + text + "\n\n")
					_ = x.Close()
				}
			})
			p, _ := newPool(t, Options{}, peer.server())
			r := p.Call(within(t, wait), peer.ref(), c)
			require.Equal(t, contract.Answered, r.Written, r.Why)
			require.Len(t, r.Result, len(`{"text":""}`)+20<<20)
		}
	})
	t.Run("http, larger than accepted", func(t *testing.T) {
		peer := newHTTPPeer(t, "modern", func(x *exchangeAt) { x.json(200, "", strings.Repeat(" ", 2<<20)+x.reply()) })
		p, _ := newPool(t, Options{MaxMessage: 1 << 20}, peer.server())
		r := p.Call(within(t, wait), peer.ref(), mutation(wait))
		require.Equal(t, contract.FullyWritten, r.Written)
		require.Contains(t, r.Why, "larger than this client accepts")
	})
}

func TestCallsThatCannotBeSentExactlyAreNotSent(t *testing.T) {
	s := newScripted(t, "answers", "modern")
	p, _ := newPool(t, Options{}, s.server())
	for _, args := range []string{`[1]`, `"x"`, `null`, `{"a":1,"a":2}`, `{"a":1`, `{"a":01}`, "{\"a\":\"\xff\"}", `{}{}`, "{\"a\":\"\n\"}"} {
		c := mutation(wait)
		c.Args = json.RawMessage(args)
		r := p.Call(within(t, wait), s.server().Ref(), c)
		require.Equal(t, contract.NotWritten, r.Written, args)
		require.Contains(t, r.Why, "the arguments are not")
	}
	c := mutation(wait)
	c.Tool = "\xff"
	require.Equal(t, contract.NotWritten, p.Call(within(t, wait), s.server().Ref(), c).Written)
	c = mutation(wait)
	c.Meta = map[string]json.RawMessage{"x/y": json.RawMessage(`{`)}
	require.Equal(t, contract.NotWritten, p.Call(within(t, wait), s.server().Ref(), c).Written)
	require.Empty(t, s.lines("calls"))
}

func TestResultIsCompleteOnlyWhenItsTypeSaysSo(t *testing.T) {
	tests := map[string]bool{
		`{}`: true, `{"content":[{"type":"hologram","x":1}],"isError":true}`: true, `{"resultType":"complete"}`: true,
		`{"ResultType":"task"}`: true, `{"nested":{"resultType":"task"}}`: true,
		`{"resultType":"input_required","requestState":"s"}`: false, `{"resultType":"task"}`: false,
		`{"resultType":"weird","content":[]}`: false, `{"resultType":null}`: false, `{"resultType":1}`: false,
		`{"resultType":"complete","resultType":"complete"}`: false, `null`: false, `[]`: false, `"x"`: false, ``: false,
	}
	for result, complete := range tests {
		r := Reply{Written: contract.Answered, Result: json.RawMessage(result)}
		require.Equal(t, complete, r.Complete(), result)
	}
	require.False(t, Reply{Written: contract.Answered, Error: &RPCError{}}.Complete())
	require.False(t, Reply{Written: contract.FullyWritten, Result: json.RawMessage(`{}`)}.Complete())
	s := newScripted(t, `result {"resultType":"input_required","requestState":"s"}`, "modern")
	p, _ := newPool(t, Options{}, s.server())
	r := p.Call(within(t, wait), s.server().Ref(), mutation(wait))
	require.Equal(t, `{"resultType":"input_required","requestState":"s"}`, string(r.Result))
	require.False(t, r.Complete())
	require.Len(t, s.lines("calls"), 1)
}

func TestErrorAnswersAreReadWhateverTheyHold(t *testing.T) {
	tests := map[string]RPCError{
		`{"code":-32602,"message":"é","data":{"n":9007199254740993}}`: {-32602, "é", json.RawMessage(`{"n":9007199254740993}`)},
		`{"code":-3.2602e4,"message":"m"}`:                            {Code: -32602, Message: "m"},
		`{"code":"E42","message":7}`:                                  {},
		`"Invalid session"`:                                           {Message: "Invalid session", Data: json.RawMessage(`"Invalid session"`)},
		`true`:                                                        {Data: json.RawMessage(`true`)},
	}
	for text, want := range tests {
		m, err := parseMessage([]byte(`{"id":1,"error":` + text + `}`))
		require.NoError(t, err)
		require.Equal(t, want, *m.err, text)
	}
}

// Whatever a shut gate says was written is what the other end gets.
func TestShutGateIsTheLastWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		raw, err := w.SyscallConn()
		require.NoError(t, err)
		size := rapid.IntRange(1, 300<<10).Draw(t, "size")
		yields := rapid.IntRange(0, 200).Draw(t, "yields")
		g := newGate(t.Context(), time.Time{}, wallClock)
		line := bytes.Repeat([]byte{'x'}, size)
		written := make(chan int, 1)
		go func() {
			n, _ := writeThrough(w, raw, g, line, g.countdown(len(line)))
			written <- n
			_ = w.Close()
		}()
		got := make(chan []byte, 1)
		go func() { text, _ := io.ReadAll(r); got <- text }()
		for range yields {
			_ = g.sentAt()
		}
		said := g.shut(errGone)
		n := <-written
		text := <-got
		_ = r.Close()
		require.Len(t, text, n)
		switch said {
		case contract.NotWritten:
			require.Empty(t, text)
		case contract.FullyWritten:
			require.Len(t, text, size)
		case contract.MaybeWritten:
			require.NotEmpty(t, text)
		}
	})
}

func TestEndOfARequestIsNoticedHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.SampledFrom([]byte("\r\na")), 0, 40).Draw(t, "body")
		text := append([]byte("POST / HTTP/1.1\r\nA: \r\r\nB: b\r\n\r\n"), body...)
		g := newGate(t.Context(), time.Time{}, wallClock)
		g.begun, g.body = true, len(body)
		for rest := text; len(rest) > 0; {
			require.False(t, g.whole)
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			g.follow(rest[:n])
			rest = rest[n:]
		}
		require.True(t, g.whole)
	})
}

func TestEventsAreReadHoweverTheyAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var want []string
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			lines := rapid.SliceOfN(rapid.StringMatching(`[a-zé:{} ]{0,40}`), 1, 3).Draw(t, "lines")
			text.WriteString(": comment" + eol + "event: message" + eol)
			for _, line := range lines {
				text.WriteString("data: " + line + eol)
			}
			text.WriteString("id: 5" + eol + eol)
			want = append(want, strings.Join(lines, "\n"))
		}
		var r io.Reader = strings.NewReader(text.String())
		if rapid.Bool().Draw(t, "cut") {
			r = iotest.OneByteReader(r)
		}
		events := newEventReader(r, 1<<20)
		var got []string
		for {
			data, err := events.next()
			if err != nil {
				require.Equal(t, io.EOF, err)
				break
			}
			got = append(got, string(data))
		}
		require.Equal(t, want, got)
		if len(want) > 0 {
			require.Equal(t, "5", events.lastID)
		}
	})
}

func TestLateRepliesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxCount, maxBytes = 5, 200
		late := newLateReplies(maxCount, maxBytes)
		for range rapid.IntRange(1, 30).Draw(t, "replies") {
			id := rapid.StringMatching(`[a-h]{0,1}`).Draw(t, "id")
			r := Reply{Written: contract.Answered, Result: bytes.Repeat([]byte{'1'}, rapid.IntRange(0, 250).Draw(t, "size"))}
			kept := late.put(id, r)
			got, ok := late.get(id)
			require.Equal(t, id != "" && len(id)+len(r.Result) <= maxBytes, kept)
			if kept {
				require.True(t, ok, "the newest is there")
				require.Equal(t, r, got)
			}
			total := 0
			for id, r := range late.byID {
				total += sizeOf(id, r)
			}
			require.Equal(t, total, late.bytes)
			require.LessOrEqual(t, total, maxBytes)
			require.LessOrEqual(t, len(late.byID), maxCount)
			require.Len(t, late.order, len(late.byID))
		}
	})
}

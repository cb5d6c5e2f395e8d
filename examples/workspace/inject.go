package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// perform runs one call, under a fault unless that is zero. run is the tool's
// whole effect. What happens to the answer is left to the HTTP exchange that
// carries the call.
func (a *application) perform(ex *exchange, ep *epoch, fault Fault, run func() (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	var answer *mcp.CallToolResult
	var err error
	effect := func() { answer, err = run() }

	switch fault.Fault {
	case Reject:
		return errorResult(codeRejected, fmt.Sprintf("%s is refused by an armed fault; nothing was done", fault.Tool))
	case RefuseStatus:
		ex.choose(disposition{kind: unavailable, retryAfter: fault.delay()})
		return placeholder(), nil
	case CrashBefore:
		a.crash()
	case LateCommit:
		ex.choose(disposition{kind: drop})
		a.late.Go(func() {
			committed := a.commitAfter(ep, fault.delay(), effect)
			a.logLateCommit(fault, committed, err)
		})
		return placeholder(), nil
	}

	var committed bool
	if fault.Fault == Slow {
		committed = a.commitAfter(ep, fault.delay(), effect)
	} else {
		committed = a.commit(ep, effect)
	}
	if !committed {
		ex.choose(disposition{kind: drop})
		return placeholder(), nil
	}
	if err != nil {
		return nil, err
	}

	switch fault.Fault {
	case CrashAfter:
		a.crash()
	case LoseAck:
		ex.choose(disposition{kind: drop})
	case Hang:
		ex.choose(disposition{kind: hold, until: ep})
	case WrongReply:
		ex.choose(disposition{kind: wrongID})
	case Garbage:
		ex.choose(disposition{kind: truncate})
	case ErrorAfter:
		return mcp.NewToolResultError("fetch failed"), nil
	}
	return answer, nil
}

func (a *application) logLateCommit(fault Fault, committed bool, err error) {
	switch {
	case !committed:
		a.log.Info("late commit abandoned", "tool", fault.Tool)
	case err != nil:
		a.log.Error("late commit failed", "tool", fault.Tool, "error", err)
	default:
		a.log.Info("late commit done", "tool", fault.Tool)
	}
}

// placeholder is an answer that no client gets to see.
func placeholder() *mcp.CallToolResult { return mcp.NewToolResultText("") }

// dispositionKind says what becomes of an answer.
type dispositionKind int

const (
	deliver     dispositionKind = iota
	drop                        // close the connection, write nothing
	hold                        // write nothing, keep the connection open
	wrongID                     // answer under another request's id
	truncate                    // answer half of the JSON
	unavailable                 // answer HTTP 503 instead
)

type disposition struct {
	kind       dispositionKind
	until      context.Context // ends a hold
	retryAfter time.Duration
}

// exchange connects a tool call with the HTTP response that carries its answer.
type exchange struct{ chosen atomic.Pointer[disposition] }

type exchangeKey struct{}

func exchangeFrom(ctx context.Context) *exchange {
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return ex
	}
	return new(exchange)
}

// choose says what becomes of the answer. It must be called before the tool
// returns.
func (ex *exchange) choose(d disposition) { ex.chosen.Store(&d) }

// spoil lets tool calls decide what becomes of their HTTP response.
func spoil(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ex := new(exchange)
		reply := &spoiler{ResponseWriter: w, ex: ex, status: http.StatusOK}
		next.ServeHTTP(reply, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, ex)))
		if d := ex.chosen.Load(); d != nil {
			reply.finish(*d, r)
		}
	})
}

// spoiler passes a response through, unless the call has chosen another end
// for it: then it keeps the response back for finish.
type spoiler struct {
	http.ResponseWriter
	ex     *exchange
	status int
	body   bytes.Buffer
}

func (s *spoiler) WriteHeader(status int) {
	if s.ex.chosen.Load() != nil {
		s.status = status
		return
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *spoiler) Write(p []byte) (int, error) {
	if s.ex.chosen.Load() != nil {
		return s.body.Write(p)
	}
	return s.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (s *spoiler) Flush() {
	if flusher, ok := s.ResponseWriter.(http.Flusher); ok && s.ex.chosen.Load() == nil {
		flusher.Flush()
	}
}

// Unwrap serves [http.ResponseController].
func (s *spoiler) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// finish ends the response as chosen. http.ErrAbortHandler makes net/http close
// the connection without another byte.
func (s *spoiler) finish(d disposition, r *http.Request) {
	body := s.body.Bytes()
	switch d.kind {
	case drop:
		panic(http.ErrAbortHandler)
	case hold:
		select {
		case <-r.Context().Done():
		case <-d.until.Done():
		}
		panic(http.ErrAbortHandler)
	case unavailable:
		if d.retryAfter > 0 {
			seconds := (d.retryAfter + time.Second - 1) / time.Second
			s.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
		}
		http.Error(s.ResponseWriter, "temporarily unavailable", http.StatusServiceUnavailable)
		return
	case truncate:
		body = body[:len(body)/2]
	case wrongID:
		body = withWrongID(body)
	}
	s.Header().Set("Content-Length", strconv.Itoa(len(body)))
	s.ResponseWriter.WriteHeader(s.status)
	_, _ = s.ResponseWriter.Write(body) // a client that has left loses this answer like any other
}

// withWrongID renames the reply. The new id is longer than the request's own,
// so it is never equal to it.
func withWrongID(body []byte) []byte {
	var reply map[string]json.RawMessage
	if json.Unmarshal(body, &reply) != nil {
		return body
	}
	id, err := json.Marshal("not-" + string(reply["id"]))
	if err != nil {
		return body
	}
	reply["id"] = id
	wrong, err := json.Marshal(reply)
	if err != nil {
		return body
	}
	return wrong
}

package toolclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// incoming is what an HTTP response says about a request.
type incoming struct {
	reply      *message  // the reply with the request's own id
	anonymous  *RPCError // an error answer without an id
	why        string    // why there is no reply
	status     int
	retryAfter time.Duration
	sessionID  string
	received   time.Time
	finish     func() // lets go of the response; may take a moment
}

// receive reads a response until it holds the reply, or cannot.
func (s *httpSession) receive(ctx context.Context, resp *http.Response, out outgoing) incoming {
	in := incoming{
		status: resp.StatusCode, retryAfter: retryAfter(resp, s.o.pool.now()),
		sessionID: resp.Header.Get("Mcp-Session-Id"),
	}
	open := []*http.Response{resp}
	in.finish = func() {
		for _, r := range open {
			s.finish(r)
		}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode/100 == 3:
		in.why = "the server redirects, and a call is never sent on to another place"
	case kind == "text/event-stream":
		open = append(open, s.receiveStream(ctx, resp.Body, out, &in)...)
	default:
		s.receiveBody(resp.Body, out, &in)
	}
	in.received = s.o.pool.now()
	if in.reply == nil && resp.StatusCode/100 != 2 {
		in.why = fmt.Sprintf("the server answered with %s (%s)", statusText(resp.StatusCode), in.why)
	}
	return in
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("HTTP %d %s", status, text)
	}
	return fmt.Sprintf("HTTP %d", status)
}

// retryAfter reads the Retry-After header: seconds, or a date.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

func (s *httpSession) receiveBody(body io.Reader, out outgoing, in *incoming) {
	limit := s.o.pool.options.MaxMessage
	text, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if len(text) > limit {
		in.why = errTooLarge.Error()
		return
	}
	messages, bad := parseMessages(text)
	for i := range messages {
		s.consider(&messages[i], out, in)
	}
	switch {
	case in.reply != nil:
	case in.why != "":
		in.why = "the response holds " + in.why
	case err != nil:
		in.why = "the answer broke off: " + s.scrub.Replace(err.Error())
	case len(text) == 0:
		in.why = "the response is empty"
	case bad != nil:
		in.why = "the response is no message: " + bad.Error()
	default:
		in.why = "the response holds nothing that is a reply"
	}
}

// consider takes a message of the response for what it is.
func (s *httpSession) consider(m *message, out outgoing, in *incoming) {
	switch {
	case in.reply != nil:
	case m.answers(out.id):
		in.reply = m
	case m.isReply() && m.id == nil && m.err != nil:
		in.anonymous = m.err
		in.why = fmt.Sprintf("an error (%d) without an id", m.err.Code)
	case m.isReply():
		in.why = "a reply with the id of another request"
	case m.id != nil && !out.p.modern:
		s.respond(out.p, *m)
	}
}

// receiveStream reads events until the reply. A stream of the handshake era that ends before it is resumed, which asks
// for the reply and not for another execution. It returns the responses that this took.
func (s *httpSession) receiveStream(ctx context.Context, body io.Reader, out outgoing, in *incoming) []*http.Response {
	var resumed []*http.Response
	events := newEventReader(body, s.o.pool.options.MaxMessage)
	for {
		err := s.readEvents(events, out, in)
		if in.reply != nil {
			return resumed
		}
		how := "the stream ended without a reply"
		if !errors.Is(err, io.EOF) {
			how = "the stream broke off: " + s.scrub.Replace(err.Error())
		}
		if in.why != "" {
			how += ", and held " + in.why
		}
		in.why = how
		if events.lastID == "" || out.p.modern || errors.Is(err, errTooLarge) || ctx.Err() != nil {
			return resumed
		}
		resp, err := s.resume(ctx, out, events.lastID, events.retry)
		if err != nil {
			in.why += "; it could not be resumed: " + err.Error()
			return resumed
		}
		resumed = append(resumed, resp)
		next := newEventReader(resp.Body, s.o.pool.options.MaxMessage)
		next.lastID, next.retry = events.lastID, events.retry
		events, in.why = next, ""
	}
}

func (s *httpSession) readEvents(events *eventReader, out outgoing, in *incoming) error {
	for in.reply == nil {
		data, err := events.next()
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			continue // it only carries an id to resume from
		}
		messages, err := parseMessages(data)
		if err != nil {
			in.why = fmt.Sprintf("an event that is no message (%s)", err)
			continue
		}
		for i := range messages {
			s.consider(&messages[i], out, in)
		}
	}
	return nil
}

// resume opens the stream again behind the last event that arrived.
func (s *httpSession) resume(ctx context.Context, out outgoing, lastID string, retry time.Duration) (*http.Response, error) {
	if retry == 0 {
		retry = time.Second
	}
	timer := time.NewTimer(max(retry, 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	resp, _, err := s.send(ctx, outgoing{verb: http.MethodGet, p: out.p, more: map[string]string{"Last-Event-Id": lastID}})
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.finish(resp)
		return nil, errors.New(statusText(resp.StatusCode))
	}
	return resp, nil
}

// finish reads what is left of a response, if that is little, so that its connection can be used again.
func (s *httpSession) finish(resp *http.Response) {
	timer := time.AfterFunc(farewell, func() { _ = resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

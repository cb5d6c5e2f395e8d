package toolclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// writeJobs writes one line after another.
func (s *stdioSession) writeJobs() {
	for {
		select {
		case <-s.dead:
			return
		case j := <-s.jobs:
			s.writing.Store(s.o.pool.now().UnixNano())
			n, err := writeThrough(s.child.stdin, s.child.raw, j.gate, j.line, j.gate.countdown(len(j.line)))
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

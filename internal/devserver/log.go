package devserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	logName = "temporal.log"

	// logLimit is the size, in bytes, from which a log is set aside (as temporal.log.1) when a server starts.
	logLimit = 8 << 20

	tailLines    = 20
	tailLineSize = 2 << 10
)

// serverLog takes what a server prints: all of it into a file and the caller's writer, the last lines into memory.
type serverLog struct {
	path string

	mu      sync.Mutex
	file    *os.File // nil without a data directory, and when closed
	extra   io.Writer
	lines   []string
	partial []byte

	port   string // as the server prints it
	banner chan struct{}
	seen   sync.Once
}

func newServerLog(o Options, port int) (*serverLog, error) {
	l := &serverLog{extra: o.LogWriter, port: ":" + strconv.Itoa(port), banner: make(chan struct{})}
	if o.DataDir == "" {
		return l, nil
	}
	l.path = filepath.Join(o.DataDir, logName)
	if info, err := os.Stat(l.path); err == nil && info.Size() > logLimit {
		if err := os.Rename(l.path, l.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("set the old log of the Temporal development server aside: %w", err)
		}
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the Temporal development server: %w", err)
	}
	l.file = file
	return l, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// stdout also watches for the address that the server prints once it listens.
func (l *serverLog) stdout() io.Writer {
	var text strings.Builder
	return writerFunc(func(p []byte) (int, error) {
		select {
		case <-l.banner:
		default:
			text.Write(p)
			if strings.Contains(text.String(), l.port) {
				l.seen.Do(func() { close(l.banner) })
			}
		}
		return l.write(p)
	})
}

func (l *serverLog) stderr() io.Writer { return writerFunc(l.write) }

// write never fails: a full disk or a closed terminal must not stop the server.
func (l *serverLog) write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.Write(p)
	}
	if l.extra != nil {
		_, _ = l.extra.Write(p)
	}
	rest := append(l.partial, p...)
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			break
		}
		l.keep(string(line[:min(len(line), tailLineSize)]))
		rest = after
	}
	l.partial = bytes.Clone(rest[:min(len(rest), tailLineSize)])
	return len(p), nil
}

func (l *serverLog) keep(line string) {
	line = strings.TrimRight(line, " \r")
	if line == "" {
		return
	}
	l.lines = append(l.lines, line)
	if len(l.lines) > tailLines {
		l.lines = l.lines[1:]
	}
}

// tail is the end of the log as the end of an error text, with the log's place.
func (l *serverLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	if len(l.partial) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(l.partial))
	}
	var text strings.Builder
	if l.path != "" {
		fmt.Fprintf(&text, "; its log is %s", l.path)
	}
	if len(lines) == 0 {
		text.WriteString("; it printed nothing")
		return text.String()
	}
	text.WriteString("; it printed last:")
	for _, line := range lines {
		text.WriteString("\n  " + line)
	}
	return text.String()
}

// awaitBanner waits until the server has printed its address, limit at most.
func (l *serverLog) awaitBanner(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.banner:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *serverLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

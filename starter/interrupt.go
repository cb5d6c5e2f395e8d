package starter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcpx-go/mcpx/starter/view"
)

// endings are the signals that end what runs in order. The end of the terminal is none where whoever started mcpx has it
// ignored, as nohup does.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// signalled is the cause of a context that a signal has ended.
type signalled struct{ signal os.Signal }

func (s signalled) Error() string { return s.signal.String() }

// Is makes errors.Is(err, context.Canceled) true: it is one way to be cancelled.
func (s signalled) Is(target error) bool { return target == context.Canceled }

// code is the exit code that shells have for a program that a signal has ended: 130 for SIGINT, 143 for SIGTERM.
func (s signalled) code() int {
	if number, ok := s.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 128 + int(syscall.SIGINT)
}

// untilSignalled ends with the first of the signals, which is its cause; a second one has its ordinary effect, and ends
// the process at once. stop gives the signals back.
func untilSignalled(parent context.Context, signals ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, signals...)
	context.AfterFunc(ctx, func() { signal.Stop(arrived) })
	go func() {
		select {
		case s := <-arrived:
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// interruptedf is the error of something that a signal, or whoever runs mcpx as a part of their program, has ended
// before it was done. The text says what that leaves behind, and what to do next; it may be empty.
func interruptedf(ctx context.Context, format string, args ...any) error {
	text := "interrupted"
	if format != "" {
		text += ": " + fmt.Sprintf(format, args...)
	}
	code, _ := interruption(ctx)
	return &exitError{code: code, err: errors.New(text)}
}

// interruption is the exit code of what was interrupted, and whether a signal did it.
func interruption(ctx context.Context) (code int, ok bool) {
	if s, ok := errors.AsType[signalled](context.Cause(ctx)); ok {
		return s.code(), true
	}
	return view.ExitFailed, false
}

// orInterruption is the error of a command, in plain words where a signal has cancelled what it was doing.
func orInterruption(ctx context.Context, err error) error {
	if err == nil || !cancelled(err) {
		return err
	}
	if _, own := errors.AsType[*exitError](err); own {
		return err
	}
	if _, ok := interruption(ctx); !ok {
		return err
	}
	return interruptedf(ctx, "")
}

// cancelled tells of an error that says no more than that a context has ended.
func cancelled(err error) bool {
	if errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		return true
	}
	_, ok := errors.AsType[*serviceerror.Canceled](err)
	return ok
}

package starter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcpx-go/mcpx/starter/screen"
)

// under is a context that has ended by a signal.
func under(t *testing.T, s os.Signal) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signalled{s})
	return ctx
}

func TestAnIgnoredEndOfTheTerminalEndsNothing(t *testing.T) {
	require.Contains(t, endings(), os.Signal(syscall.SIGHUP))
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	require.NotContains(t, endings(), os.Signal(syscall.SIGHUP))
	require.Contains(t, endings(), os.Signal(syscall.SIGTERM))
}

func TestWhatASignalHasEndedSaysSoWithItsCode(t *testing.T) {
	for _, test := range []struct {
		signal os.Signal
		code   int
	}{{os.Interrupt, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		ctx := under(t, test.signal)
		for _, err := range []error{
			context.Canceled, fmt.Errorf("look: %w", ctx.Err()), serviceerror.NewCanceled("context canceled"),
			fmt.Errorf("list: %w", status.Error(codes.Canceled, "context canceled")),
		} {
			said := orInterruption(ctx, err)
			require.EqualError(t, said, "interrupted")
			code, say := exitCode(said)
			require.Equal(t, test.code, code)
			require.True(t, say)
		}
	}
	ctx := under(t, os.Interrupt)
	broken := errors.New("the disk is full")
	require.Equal(t, broken, orInterruption(ctx, broken), "what went wrong beside it is not hidden")
	require.NoError(t, orInterruption(ctx, nil), "an end in order")
	require.Equal(t, context.Canceled, orInterruption(t.Context(), context.Canceled))
}

func TestAnInterruptedQuestionIsNoAnswer(t *testing.T) {
	in, typing := io.Pipe()
	defer func() { _ = typing.Close() }()
	var out, messages bytes.Buffer
	a := New(nil, in, screen.Plainly(&out, 0), screen.Plainly(&messages, 0))
	ok, err := a.confirm(under(t, os.Interrupt), "Undo exactly this?")
	require.False(t, ok)
	require.EqualError(t, err, "interrupted: nothing was sent")
	code, _ := exitCode(err)
	require.Equal(t, 130, code)
}

func TestManyIDsOfOneBeginning(t *testing.T) {
	var found []string
	for i := range maxBegin + 1 {
		found = append(found, fmt.Sprintf("plan/key-%03d", i))
	}
	require.ErrorContains(t, ambiguous("plan/", found), "more than 100 transactions begin with plan/: plan/key-000, ")
	require.ErrorContains(t, ambiguous("plan/", found[:maxBegin]), "100 transactions begin with plan/: plan/key-000, ")
	require.NotContains(t, ambiguous("plan/", found[:maxBegin]).Error(), "more than")
	require.EqualError(t, ambiguous("plan/", found[:2]), "2 transactions begin with plan/: plan/key-000, plan/key-001. Give more of the ID")
}

package starter

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// exitError ends mcpx with a code of its own. Without an error it says nothing: all has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit ends mcpx with a code, silently. Code 0 is no error.
func exit(code int) error {
	if code == view.ExitOK {
		return nil
	}
	return &exitError{code: code}
}

// usagef is an error of whoever typed the command.
func usagef(format string, args ...any) error {
	return &exitError{code: view.ExitUsage, err: fmt.Errorf(format, args...)}
}

// unwritten says that something of the result could not be written.
func unwritten(out *screen.Screen) error {
	if err := out.Failed(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// orUnwritten is the error of a command that has ended; where it has none to tell, that its result could not be written.
func orUnwritten(out *screen.Screen, err error) error {
	if _, say := exitCode(err); say {
		return err
	}
	if failed := unwritten(out); failed != nil {
		return failed
	}
	return err
}

// given refuses flags that were given an empty value, as by a variable of the shell that is not set: what was meant is
// not what leaving the flag out means.
func given(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return usagef("--%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}

// errorCodes say which exit code an error of the other packages means. The first that matches counts.
var errorCodes = []struct {
	err  error
	code int
}{
	{sdk.ErrConflict, view.ExitConflict},
	{sdk.ErrEffectsMayRemain, view.ExitEffectsRemain},
	{manifest.ErrUnknownPlan, view.ExitUsage},
	{manifest.ErrInput, view.ExitUsage},
	{manifest.ErrKey, view.ExitUsage},
	{manifest.ErrNoManifest, view.ExitUsage},
	{sdk.ErrNotFound, view.ExitUsage},
}

// exitCode is the code that an error ends mcpx with, and whether there is something to say about it.
func exitCode(err error) (code int, say bool) {
	if err == nil {
		return view.ExitOK, false
	}
	if own, ok := errors.AsType[*exitError](err); ok {
		return own.code, own.err != nil
	}
	if _, broken := errors.AsType[manifest.Errors](err); broken {
		return view.ExitUsage, true
	}
	for _, known := range errorCodes {
		if errors.Is(err, known.err) {
			return known.code, true
		}
	}
	return view.ExitFailed, true
}

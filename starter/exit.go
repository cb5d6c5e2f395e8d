package starter

import (
	"errors"
	"fmt"

	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
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

// codes say which exit code an error of the other packages means. The first that matches counts.
var codes = []struct {
	err  error
	code int
}{
	{sdk.ErrConflict, view.ExitConflict},
	{sdk.ErrEffectsMayRemain, view.ExitEffectsRemain},
	{manifest.ErrUnknownPlan, view.ExitUsage},
	{manifest.ErrInput, view.ExitUsage},
	{manifest.ErrNoManifest, view.ExitUsage},
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
	for _, known := range codes {
		if errors.Is(err, known.err) {
			return known.code, true
		}
	}
	return view.ExitFailed, true
}

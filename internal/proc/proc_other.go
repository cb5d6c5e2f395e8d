//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

func isolate(*exec.Cmd) {}

// signalGroup can only kill, and only the process itself.
func signalGroup(leader *os.Process, sig syscall.Signal) error {
	if sig != syscall.SIGKILL {
		return errors.ErrUnsupported
	}
	return leader.Kill()
}

func awaitEnd(cmd *exec.Cmd, atEnd func()) error {
	err := cmd.Wait()
	atEnd()
	return err
}

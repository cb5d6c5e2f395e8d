//go:build unix && !linux

package proc

import (
	"os/exec"
	"syscall"
)

// isolate gives the command its own process group. These systems have no signal for the parent's death.
func isolate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// awaitEnd waits for the command's end and calls atEnd right after the process was reaped.
func awaitEnd(cmd *exec.Cmd, atEnd func()) error {
	err := cmd.Wait()
	atEnd()
	return err
}

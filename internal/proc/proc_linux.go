package proc

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate gives the command its own process group and ties its life to the thread that starts it.
func isolate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// awaitEnd waits for the command's end and calls atEnd before the process is reaped: its id, and so its group's, cannot
// have gone to somebody else.
func awaitEnd(cmd *exec.Cmd, atEnd func()) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	atEnd()
	return cmd.Wait()
}

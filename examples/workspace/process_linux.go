package workspace

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the child in a process group of its own, and makes the kernel
// kill it when its parent dies.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

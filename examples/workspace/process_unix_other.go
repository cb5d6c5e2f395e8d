//go:build unix && !linux

package workspace

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the child in a process group of its own. It ends with its
// parent because its standard input is closed then.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

//go:build unix

package workspace

import (
	"os"
	"syscall"
)

// killGroup ends the child and everything it started.
func killGroup(process *os.Process) {
	if syscall.Kill(-process.Pid, syscall.SIGKILL) != nil {
		_ = process.Kill() // it may have ended by itself
	}
}

//go:build !unix

package workspace

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: the child ends with its parent because its standard
// input is closed then.
func ownGroup(*exec.Cmd) {}

// killGroup ends the child. It starts no processes of its own.
func killGroup(process *os.Process) {
	_ = process.Kill() // it may have ended by itself
}

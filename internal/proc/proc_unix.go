//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

// signalGroup sends sig to the process group that leader leads.
func signalGroup(leader *os.Process, sig syscall.Signal) error {
	err := syscall.Kill(-leader.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

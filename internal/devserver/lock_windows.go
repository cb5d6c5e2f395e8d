package devserver

import (
	"errors"
	"os"
	"os/exec"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock on file, or returns errLocked. It lasts until the file is closed.
func tryLock(file *os.File, exclusive bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

// shareFile does nothing: descriptors are not inherited here, and the lock ends with this process.
func shareFile(*exec.Cmd, *os.File) {}

func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = process.Release()
	return true
}

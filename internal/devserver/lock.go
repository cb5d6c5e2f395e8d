package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	lockName = "temporal.lock"

	// lockPatience is how long a lock may stay taken by an owner that is dead or unknown: a server that dies with
	// its owner needs a moment, and so does a look at the lock.
	lockPatience = 5 * time.Second
	lockPoll     = 20 * time.Millisecond
)

// ErrInUse says that another server runs on the data directory.
var ErrInUse = errors.New("data directory in use")

var errLocked = errors.New("locked")

// dirLock is the lock on a data directory. It is held by this process and by the server that inherits it, so that it
// is free only when both are gone. A nil lock stands for no directory.
type dirLock struct{ file *os.File }

// lockDir locks a data directory, or says with ErrInUse who has it.
func lockDir(ctx context.Context, dataDir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dataDir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the data directory: %w", err)
	}
	patience := time.NewTimer(lockPatience)
	defer patience.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		err := tryLock(file, true)
		if err == nil {
			// What a crash left behind is about a server that is gone.
			removeInfo(dataDir)
			return &dirLock{file}, nil
		}
		if !errors.Is(err, errLocked) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		info, infoErr := readInfo(dataDir)
		held := infoErr == nil && alive(info.Owner)
		if !held {
			select {
			case <-poll.C:
				continue
			case <-patience.C:
			case <-ctx.Done():
			}
		}
		_ = file.Close()
		return nil, inUse(dataDir, info)
	}
}

func inUse(dataDir string, holder Info) error {
	if holder.PID == 0 {
		return fmt.Errorf("%w: a Temporal development server is being started or stopped on %s: "+
			"wait for it, or choose another data directory", ErrInUse, dataDir)
	}
	return fmt.Errorf("%w: the Temporal development server at %s (pid %d, started by pid %d) runs on %s: "+
		"stop it, connect to it, or choose another data directory",
		ErrInUse, holder.Address, holder.PID, holder.Owner, dataDir)
}

// locked says whether a data directory's lock is held.
func locked(dataDir string) bool {
	file, err := os.Open(filepath.Join(dataDir, lockName))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return errors.Is(tryLock(file, false), errLocked)
}

// inherit gives the server a share in the lock.
func (l *dirLock) inherit(cmd *exec.Cmd) {
	if l != nil {
		shareFile(cmd, l.file)
	}
}

// release gives this process's share up. The lock file stays: removing it would let two processes lock two files.
func (l *dirLock) release() {
	if l != nil {
		_ = l.file.Close()
	}
}

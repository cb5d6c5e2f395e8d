package toolclient

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unsent tells whether the socket holds bytes that the peer has not acknowledged: the kernel would go on delivering
// them, even after an ordinary close.
func unsent(raw syscall.RawConn) bool {
	pending := 0
	var failed error
	err := raw.Control(func(fd uintptr) {
		pending, failed = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) // SIOCOUTQ has the same number
	})
	return err != nil || failed != nil || pending > 0
}

//go:build unix

package toolclient

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// writeThrough writes p to a non-blocking descriptor, asking the gate before every system call. It waits, outside of
// the gate, while the descriptor takes nothing. wrote, unless nil, learns under the gate's lock what has been written.
func writeThrough(_ io.Writer, raw syscall.RawConn, g *gate, p []byte, wrote func([]byte)) (int, error) {
	n := 0
	var failed error
	err := raw.Write(func(fd uintptr) bool {
		for n < len(p) {
			m, err := g.try(func() (int, error) { return writeOnce(int(fd), p[n:]) }, func(m int) {
				if wrote != nil {
					wrote(p[n : n+m])
				}
			})
			n += m
			if errors.Is(err, syscall.EAGAIN) {
				return false
			}
			if err != nil {
				failed = err
				return true
			}
		}
		return true
	})
	if failed == nil {
		failed = err
	}
	return n, failed
}

// maxWrite bounds one system call: some systems refuse more than 2 GiB.
const maxWrite = 1 << 20

func writeOnce(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Write(fd, p[:min(len(p), maxWrite)])
		switch {
		case err == nil:
			return n, nil
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, err
		default:
			return 0, os.NewSyscallError("write", err)
		}
	}
}

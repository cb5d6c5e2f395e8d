//go:build !unix

package toolclient

import (
	"io"
	"syscall"
)

// maxWrite is how much is written between two looks at the gate.
const maxWrite = 64 << 10

// writeThrough writes p piece by piece, asking the gate before each. A piece that blocks may be written late: these
// systems have no write that is tried without waiting.
func writeThrough(w io.Writer, _ syscall.RawConn, g *gate, p []byte, wrote func([]byte)) (int, error) {
	n := 0
	for n < len(p) {
		if err := g.open(); err != nil {
			return n, err
		}
		m, err := w.Write(p[n:min(len(p), n+maxWrite)])
		if wrote != nil {
			g.mu.Lock()
			wrote(p[n : n+m])
			g.mu.Unlock()
		}
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// open is try for a write that may block: it counts as begun before it starts.
func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.pass(); err != nil {
		return err
	}
	g.begin(g.now())
	return nil
}

//go:build unix

package toolclient

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// callOnce is a process that calls a tool with 8 MiB of arguments and prints its reply.
func callOnce(args []string) {
	deadline, err := time.Parse(time.RFC3339Nano, args[1])
	if err != nil {
		panic(err)
	}
	p := NewPool(Options{})
	s := contract.Server{Name: "peer", HTTP: &contract.HTTPServer{URL: args[0]}}
	if err := p.Add(s); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	r := p.Call(ctx, s.Ref(), Call{
		Tool: "create", Args: json.RawMessage(`{"text":"` + strings.Repeat("x", 8<<20) + `"}`), WriteDeadline: deadline,
	})
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

// A process that is frozen in the middle of a write must not finish it when it wakes up after the write deadline, even
// though the connection takes bytes again at the very moment of waking.
func TestFrozenProcessDoesNotFinishItsWriteWhenItWakes(t *testing.T) {
	peer, stall := newStalledPeer(t)
	deadline := time.Now().Add(4 * time.Second)
	caller := exec.Command(os.Args[0], roleFlag, "caller", peer.url, deadline.Format(time.RFC3339Nano))
	out, err := caller.StdoutPipe()
	require.NoError(t, err)
	caller.Stderr = os.Stderr
	require.NoError(t, caller.Start())
	defer func() { _ = caller.Process.Kill() }()

	select {
	case <-stall.begun:
	case <-time.After(time.Until(deadline)):
		t.Fatal("this machine is too slow for the test: the request had not begun by its write deadline")
	}
	require.NoError(t, caller.Process.Signal(syscall.SIGSTOP))
	time.Sleep(time.Until(deadline.Add(100 * time.Millisecond))) // what is tested is that time passes while the process does not
	close(stall.read)
	time.Sleep(100 * time.Millisecond) // the peer empties the kernel's buffers: the connection takes bytes again
	require.NoError(t, caller.Process.Signal(syscall.SIGCONT))

	var r Reply
	require.NoError(t, json.NewDecoder(out).Decode(&r))
	require.NoError(t, caller.Wait())
	require.Equal(t, contract.MaybeWritten, r.Written, r.Why)
	require.False(t, <-stall.whole, "the request was finished after its write deadline")
}

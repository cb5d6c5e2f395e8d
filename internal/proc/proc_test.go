//go:build unix

package proc_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpx-go/mcpx/internal/proc"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
)

const (
	wait = 20 * time.Second
	tick = 10 * time.Millisecond
)

// The test binary plays the children too: the first argument after roleFlag says which.
const roleFlag = "-proc-test-role"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleFlag {
		roles[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var roles = map[string]func(args []string){
	// sleeper prints its pid and stays.
	"sleeper": func([]string) {
		fmt.Println(os.Getpid())
		select {}
	},
	// stubborn is a sleeper that ignores SIGTERM.
	"stubborn": func([]string) {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		select {}
	},
	// polite ends with status 0 on SIGTERM.
	"polite": func([]string) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println(os.Getpid())
		<-c
		fmt.Println("bye")
	},
	// exit ends with the given status.
	"exit": func(args []string) {
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	},
	// lines prints so many lines and ends.
	"lines": func(args []string) {
		n, _ := strconv.Atoi(args[0])
		w := bufio.NewWriter(os.Stdout)
		for i := range n {
			_, _ = fmt.Fprintln(w, "line", i)
		}
		_ = w.Flush()
	},
	// family starts a sleeper in its own group, which inherits its output, prints that child's pid, and then stays
	// or ends, as its argument says.
	"family": func(args []string) {
		child := exec.Command(os.Args[0], roleFlag, "sleeper")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		if args[0] == "ends" {
			// The sleeper's line must be out before its group is killed.
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			return
		}
		select {}
	},
	// parent starts a sleeper through the package under test and stays.
	"parent": func([]string) {
		cmd := exec.Command(os.Args[0], roleFlag, "sleeper")
		cmd.Stdout = os.Stdout
		if _, err := proc.Start(cmd); err != nil {
			panic(err)
		}
		// Threads come and go around the child; its life must not hang on one of them.
		for range 50 {
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
				})
			}
			group.Wait()
		}
		fmt.Println("ready")
		select {}
	},
}

func role(name string, args ...string) *exec.Cmd {
	return exec.Command(os.Args[0], append([]string{roleFlag, name}, args...)...)
}

// printedPid waits for the first whole line of the output and reads it as a process id.
func printedPid(t *testing.T, out *proctest.Output) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		line, _, whole := strings.Cut(out.String(), "\n")
		if !whole {
			return false
		}
		var err error
		pid, err = strconv.Atoi(line)
		return err == nil
	}, wait, tick, "no process id in the output")
	return pid
}

func start(t *testing.T, cmd *exec.Cmd) (*proc.Process, *proctest.Output) {
	t.Helper()
	out := &proctest.Output{}
	cmd.Stdout = out
	p, err := proc.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p, out
}

func TestChildLeadsItsOwnGroup(t *testing.T) {
	p, out := start(t, role("sleeper"))
	require.Equal(t, p.Pid(), printedPid(t, out))
	group, err := syscall.Getpgid(p.Pid())
	require.NoError(t, err)
	require.Equal(t, p.Pid(), group)
	require.NotEqual(t, syscall.Getpgrp(), group)
}

func TestExitErrorSaysHowTheChildEnded(t *testing.T) {
	for _, code := range []int{0, 7} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			p, _ := start(t, role("exit", strconv.Itoa(code)))
			err := p.Wait()
			require.Equal(t, err, p.ExitError())
			if code == 0 {
				require.NoError(t, err)
				return
			}
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, code, exit.ExitCode())
		})
	}
}

func TestExitErrorIsNilWhileTheChildRuns(t *testing.T) {
	p, _ := start(t, role("sleeper"))
	require.NoError(t, p.ExitError())
	select {
	case <-p.Done():
		t.Fatal("done while the child runs")
	default:
	}
}

func TestStopLetsTheChildFinish(t *testing.T) {
	p, out := start(t, role("polite"))
	printedPid(t, out)
	require.NoError(t, p.Stop(wait))
	require.NoError(t, p.ExitError())
	require.Contains(t, out.String(), "bye")
}

func TestStopKillsAChildThatDoesNotListen(t *testing.T) {
	p, out := start(t, role("stubborn"))
	pid := printedPid(t, out)
	require.NoError(t, p.Stop(50*time.Millisecond))
	proctest.RequireGone(t, pid)
	var exit *exec.ExitError
	require.ErrorAs(t, p.ExitError(), &exit)
}

func TestSignalsToAnEndedChildAreRefused(t *testing.T) {
	p, _ := start(t, role("exit", "0"))
	require.NoError(t, p.Wait())
	require.ErrorIs(t, p.Signal(syscall.SIGTERM), os.ErrProcessDone)
	require.NoError(t, p.Stop(time.Second))
	require.NoError(t, p.Kill())
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	p, out := start(t, role("family", "stays"))
	grandchild := printedPid(t, out)
	require.NoError(t, p.Stop(wait))
	proctest.RequireGone(t, grandchild)
}

func TestWhatAnEndedChildLeavesBehindIsKilled(t *testing.T) {
	cmd := role("family", "ends")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	p, out := start(t, cmd)
	grandchild := printedPid(t, out)
	_, err = io.WriteString(stdin, "\n")
	require.NoError(t, err)
	require.NoError(t, p.Wait(), "the inherited output must not hold the end back")
	proctest.RequireGone(t, grandchild)
}

func TestPipesDeliverEverythingTheChildWrote(t *testing.T) {
	const lines = 20_000
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	cmd := role("lines", strconv.Itoa(lines))
	cmd.Stdout = w
	p, err := proc.Start(cmd, w)
	require.NoError(t, err)
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, p.Wait())
	require.Equal(t, lines, bytes.Count(all, []byte("\n")))
}

func TestFailedStartNamesTheCommandAndClosesTheChildsEnds(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	cmd := exec.Command("/nonexistent/program")
	cmd.Stdout = w
	_, err = proc.Start(cmd, w)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/nonexistent/program")
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestConcurrentStopsAgree(t *testing.T) {
	p, out := start(t, role("sleeper"))
	printedPid(t, out)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if err := p.Stop(time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	require.Error(t, p.ExitError())
}

func TestChildDiesWithItsKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can tie a child's life to its parent's")
	}
	// Not through the package under test: its group kill must not do the work.
	parent := role("parent")
	out := &proctest.Output{}
	parent.Stdout = out
	parent.WaitDelay = wait
	require.NoError(t, parent.Start())
	child := printedPid(t, out)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "ready") }, wait, tick)
	require.False(t, proctest.Gone(child))
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	proctest.RequireGone(t, child)
}

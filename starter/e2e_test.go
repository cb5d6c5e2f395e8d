package starter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/proc/proctest"
	"github.com/mcpx-go/mcpx/internal/stack"
	"github.com/mcpx-go/mcpx/manifest"
)

// program is mcpx as a process of its own, in a directory with nothing in it.
type program struct {
	*exec.Cmd
	out, err proctest.Output
	done     chan struct{}
}

func run(t *testing.T, stdin io.Reader, args ...string) *program {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	temporal, err := devserver.Find()
	require.NoError(t, err)
	p := &program{Cmd: exec.Command(built(t), args...), done: make(chan struct{})}
	p.Dir, p.Stdin, p.Stdout, p.Stderr = t.TempDir(), stdin, &p.out, &p.err
	// What a killed one leaves behind goes with the test.
	p.Env = append(os.Environ(), devserver.BinaryVariable+"="+temporal, "TMPDIR="+t.TempDir())
	require.NoError(t, p.Start())
	go func() {
		_ = p.Wait() // the exit code says it
		close(p.done)
	}()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// requireEnd waits for the end of the program and checks its exit code.
func (p *program) requireEnd(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.done:
		require.Equal(t, code, p.ProcessState.ExitCode(), "stdout:\n%s\nstderr:\n%s", p.out.String(), p.err.String())
	case <-time.After(2 * wait):
		t.Fatalf("it does not end; stdout:\n%s\nstderr:\n%s", p.out.String(), p.err.String())
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func TestTheDemonstrationEndsAsTheStorySays(t *testing.T) {
	p := run(t, nil, "demo", "workspace", "--yes")
	p.requireEnd(t, 0)
	story := p.out.String()
	require.True(t, strings.HasPrefix(lastLine(story), "COMPENSATED"), story)
	for _, text := range []string{
		"http://127.0.0.1:", "IN_DOUBT", "RECOVERED", "FAILED", "AWAITING_COMPENSATION_APPROVAL", "Undo plan 1, digest ",
		"routes in existence: 1, calls of create_route: 1", "nothing is left in the four applications",
	} {
		require.Contains(t, story, text)
	}
	require.NotContains(t, story, "✗")
	require.Regexp(t, `(?m)^routing +nothing +create_route 1, delete_route 1`, story)
	in := strings.Index(story, "IN_DOUBT")
	require.Less(t, in, strings.Index(story, "RECOVERED"))
	require.Less(t, strings.Index(story, "delete_route "), strings.Index(story, "delete_instance "), "newest first")
	require.Less(t, strings.Index(story, "delete_instance "), strings.LastIndex(story, "delete_database "))
}

func TestTheDemonstrationForPrograms(t *testing.T) {
	p := run(t, nil, "demo", "--yes", "--json", "--quiet")
	p.requireEnd(t, 0)
	require.Empty(t, p.err.String())
	var story struct {
		OK     bool
		State  contract.TxState
		Proofs []struct {
			Claim string
			Holds bool
		}
		Applications []struct {
			Application workspace.Kind
			Resources   []string
			Calls       map[string]int
		}
		Receipt contract.Receipt
	}
	require.NoError(t, json.Unmarshal([]byte(p.out.String()), &story))
	require.True(t, story.OK)
	require.Equal(t, contract.TxCompensated, story.State)
	require.Equal(t, contract.TxCompensated, story.Receipt.State)
	require.Len(t, story.Applications, 4)
	require.Len(t, story.Proofs, 6)
}

func TestADeclinedDemonstrationSaysWhatStays(t *testing.T) {
	p := run(t, strings.NewReader("no\n"), "demo")
	p.requireEnd(t, 1)
	require.True(t, strings.HasPrefix(lastLine(p.out.String()), "RETAINED"), p.out.String())
	require.Regexp(t, `(?m)^routing +rt_`, p.out.String())
}

func TestAKeptDemonstrationCanBeLookedAtUntilItIsStopped(t *testing.T) {
	p := run(t, nil, "demo", "--yes", "--keep")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "Ctrl-C stops it") }, 2*wait, poll)
	_, after, ok := strings.Cut(p.err.String(), "--address ")
	require.True(t, ok)
	address, _, _ := strings.Cut(after, "\n")
	r := mcpx(t, "status", "provision-workspace/", "--address", address).requireCode(t, 0)
	require.Contains(t, r.out, "COMPENSATED")
	require.NoError(t, p.Process.Signal(os.Interrupt))
	p.requireEnd(t, 0)
}

func TestAnInterruptedDemonstrationLeavesNothing(t *testing.T) {
	stdin, answers, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = answers.Close() }()
	defer func() { _ = stdin.Close() }()
	p := run(t, stdin, "demo")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "Undo exactly this?") }, 2*wait, poll)
	children := childrenOf(t, p.Process.Pid)
	require.NotEmpty(t, children)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	p.requireEnd(t, 130)
	require.Contains(t, p.err.String(), "interrupted")
	proctest.RequireGone(t, children...)
}

// childrenOf lists the processes that a process has started.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			children = append(children, child)
		}
	}
	return children
}

// development is a running `mcpx dev`, and what it said of itself.
type development struct {
	*program
	data string
	Info struct {
		Temporal, UI, Namespace, Manifest string
		Applications                      map[string]string
		ApplicationPids                   map[string]int
		TemporalPid                       int
	}
}

// develop runs `mcpx dev` with a manifest whose applications have ports of their own: those of the examples may be in
// use on this machine.
func develop(t *testing.T, args ...string) *development {
	t.Helper()
	d := &development{data: t.TempDir()}
	args = append([]string{"dev", "--json", "--data", d.data}, args...)
	if !slices.Contains(args, "--no-examples") {
		file, _ := freeManifest(t)
		args = append(args, "--manifest", file)
	}
	d.program = run(t, nil, args...)
	require.Eventually(t, func() bool {
		return json.Unmarshal([]byte(d.out.String()), &d.Info) == nil || d.ended()
	}, 2*wait, poll)
	require.False(t, d.ended(), d.err.String())
	return d
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (d *development) pids() []int {
	pids := []int{d.Info.TemporalPid}
	for _, pid := range d.Info.ApplicationPids {
		pids = append(pids, pid)
	}
	return pids
}

// freeManifest is the examples' manifest with the applications at free ports, which it returns in order.
func freeManifest(t *testing.T) (file string, ports []string) {
	t.Helper()
	text := string(examplesText(t))
	for _, app := range workspace.Apps() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = l.Close() }() // only when all are found, so that they differ
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		text = strings.ReplaceAll(text, app.Addr(), "127.0.0.1:"+port)
		ports = append(ports, port)
	}
	return write(t, "mcpx.yaml", text), ports
}

func TestDevRunsEverythingAndEndsWithIt(t *testing.T) {
	d := develop(t)
	require.Equal(t, "mcpx", d.Info.Namespace)
	require.Len(t, d.Info.ApplicationPids, 4)
	require.NotEmpty(t, d.Info.UI)
	require.FileExists(t, d.Info.Manifest)

	// Another terminal, in another directory: it finds the stack through the data directory.
	t.Chdir(t.TempDir())
	other := typed{data: d.data}
	other.mcpx(t, "start", "provision-workspace", "-i", "workspace=acme", "--wait").requireCode(t, 0)
	other.mcpx(t, "doctor").requireCode(t, 0)
	r := other.mcpx(t, "dev").requireCode(t, 1)
	require.Contains(t, r.err, "in use")

	require.NoError(t, d.Process.Signal(syscall.SIGTERM))
	d.requireEnd(t, 0)
	proctest.RequireGone(t, d.pids()...)
	if l, err := net.Listen("tcp", "127.0.0.1:7233"); err == nil { // nobody else's Temporal is at the usual port
		require.NoError(t, l.Close())
		r = other.mcpx(t, "list").requireCode(t, 1)
		require.Contains(t, r.err, "mcpx dev")
	}

	// What was done is still known the next time.
	again := run(t, nil, "dev", "--json", "--data", d.data, "--manifest", d.Info.Manifest)
	require.Eventually(t, func() bool { return json.Unmarshal([]byte(again.out.String()), &d.Info) == nil }, 2*wait, poll)
	other.mcpx(t, "receipt", "provision-workspace/").requireCode(t, 0)
	require.NoError(t, again.Process.Signal(os.Interrupt))
	again.requireEnd(t, 0)
	proctest.RequireGone(t, d.pids()...)
}

func TestNothingOutlivesAKilledDev(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent")
	}
	d := develop(t, "--ephemeral")
	require.NoError(t, d.Process.Kill())
	<-d.done
	proctest.RequireGone(t, d.pids()...)
}

func TestDevEndsWhenAPartDoes(t *testing.T) {
	d := develop(t, "--ephemeral")
	victim, err := os.FindProcess(d.Info.ApplicationPids["compute"])
	require.NoError(t, err)
	require.NoError(t, victim.Kill())
	d.requireEnd(t, 1)
	require.Contains(t, d.err.String(), "compute application")
	proctest.RequireGone(t, d.pids()...)
}

func TestDevSaysWhichPortIsTaken(t *testing.T) {
	file, ports := freeManifest(t)
	l, err := net.Listen("tcp", "127.0.0.1:"+ports[2])
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	p := run(t, nil, "dev", "--ephemeral", "--data", t.TempDir(), "--manifest", file)
	p.requireEnd(t, 1)
	require.Contains(t, p.err.String(), ports[2])
	require.Contains(t, p.err.String(), "--no-examples")
}

func TestDevUsesTheTemporalThatIsNamed(t *testing.T) {
	s := running(t)
	d := develop(t, "--no-examples", "--address", s.Address, "--namespace", "beside")
	require.Zero(t, d.Info.TemporalPid)
	require.Equal(t, "beside", d.Info.Namespace)
	require.FileExists(t, d.Info.Manifest, "the examples' manifest, since there is none where it runs")
	require.Empty(t, d.Info.ApplicationPids)
	require.NoError(t, d.Process.Signal(syscall.SIGTERM))
	d.requireEnd(t, 0)
}

func TestAWorkerCarriesOutWhatWaitedForIt(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	text := quick.Replace(string(examplesText(t)))
	m, err := manifest.Parse("mcpx.yaml", []byte(text))
	require.NoError(t, err)
	alone, err := stack.Start(context.Background(), stack.Options{
		Manifest: m, Apps: true, FreePorts: true, Binary: []string{built(t), "example", "workspace"},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, alone.Stop()) }()
	s := system{alone, write(t, "mcpx.yaml", moved(text, alone))}

	id := s.started(t, "patient")
	r := s.mcpx(t, "status", id).requireCode(t, 0)
	require.Contains(t, r.out, "mcpx worker", "nobody is there to do it, and that is said")
	r = s.mcpx(t, "doctor").requireCode(t, 1)
	require.Contains(t, r.out, "no worker polls it")
	r = s.mcpx(t, "abort", id, "--reason", "too early", "--json").requireCode(t, 0)
	require.Contains(t, r.err, "no worker is there to judge it")

	w := run(t, nil, "worker", "--json", "--address", s.Address, "--manifest", s.file, "--data", t.TempDir())
	require.Eventually(t, func() bool { return strings.Contains(w.out.String(), `"queues"`) }, wait, poll, w.err.String)
	r = s.mcpx(t, "status", id, "--watch")
	require.Contains(t, r.out, "too early")
	other := s.started(t, "impatient")
	s.mcpx(t, "status", other, "--watch").requireCode(t, 0)
	require.NoError(t, w.Process.Signal(syscall.SIGTERM))
	w.requireEnd(t, 0)
}

func TestAWorkerMakesItsNamespace(t *testing.T) {
	s := running(t)
	w := run(t, nil, "worker", "--json", "--address", s.Address, "--namespace", "fresh", "--manifest", s.file, "--data", t.TempDir())
	require.Eventually(t, func() bool { return strings.Contains(w.out.String(), `"queues"`) }, wait, poll, w.err.String)
	r := s.mcpx(t, "list", "--namespace", "fresh").requireCode(t, 0)
	require.Contains(t, r.err, "no transactions")
	require.NoError(t, w.Process.Signal(os.Interrupt))
	w.requireEnd(t, 0)
	require.NotContains(t, fmt.Sprint(w.err.String()), "level=ERROR")
}

func TestAnInterruptedWaitSaysThatTheTransactionGoesOn(t *testing.T) {
	s := running(t)
	at := []string{"--address", s.Address, "--manifest", s.file, "--data", t.TempDir()}
	for _, test := range []struct {
		signal os.Signal
		code   int
	}{{os.Interrupt, 130}, {syscall.SIGTERM, 143}} {
		name := fmt.Sprintf("interrupted-%d", test.code)
		s.fault(t, workspace.Database, "create_database", workspace.Slow, 1, 1500)
		p := run(t, nil, append([]string{"start", "provision-workspace", "-i", "workspace=" + name, "--wait"}, at...)...)
		require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "EXECUTING") }, wait, poll, p.err.String)
		require.NoError(t, p.Process.Signal(test.signal))
		p.requireEnd(t, test.code)
		require.Contains(t, lastLine(p.err.String()), "interrupted: the transaction goes on")
		_, command, ok := strings.Cut(lastLine(p.err.String()), "mcpx status ")
		require.True(t, ok, p.err.String())
		id, _, _ := strings.Cut(command, " ")
		s.mcpx(t, "status", id, "--watch").requireCode(t, 0)
	}
}

func TestAWorkerOutlivesATerminalThatItIgnores(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	s := running(t)
	nohup := &program{done: make(chan struct{})}
	nohup.Cmd = exec.Command("sh", "-c", `trap "" HUP; exec "$0" "$@"`, built(t), "worker", "--json", "--address", s.Address, "--namespace", "nohup", "--manifest", s.file, "--data", t.TempDir())
	nohup.Dir, nohup.Stdout, nohup.Stderr = t.TempDir(), &nohup.out, &nohup.err
	require.NoError(t, nohup.Start())
	go func() {
		_ = nohup.Wait() // the exit code says it
		close(nohup.done)
	}()
	t.Cleanup(func() { _ = nohup.Process.Kill() })
	require.Eventually(t, func() bool { return strings.Contains(nohup.out.String(), `"queues"`) }, wait, poll, nohup.err.String)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", nohup.Process.Pid))
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(status), "SigIgn:")
	mask, err := strconv.ParseUint(strings.Fields(ignored)[0], 16, 64)
	require.NoError(t, err)
	require.NotZero(t, mask&(1<<(syscall.SIGHUP-1)), "it is still ignored")
	require.NoError(t, nohup.Process.Signal(syscall.SIGTERM))
	nohup.requireEnd(t, 0)
}

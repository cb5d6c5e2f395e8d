//go:build unix

package toolclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// scripted is a stdio server, run as a child process, that does what its script says with each tools/call.
type scripted struct {
	script, era string
	dir         string // where the server leaves its traces
}

func newScripted(t *testing.T, script, era string) scripted {
	return scripted{script: script, era: era, dir: t.TempDir()}
}

func (s scripted) server() contract.Server {
	return contract.Server{Name: "peer", Stdio: &contract.StdioServer{
		Command: []string{os.Args[0], roleFlag, "server", s.script, s.era, s.dir},
	}}
}

// lines are the lines of a trace: "calls" holds each tools/call that was read, "pids" each process.
func (s scripted) lines(trace string) []string {
	text, _ := os.ReadFile(filepath.Join(s.dir, trace))
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// pids are the processes that the server has been, and those it has started.
func (s scripted) pids(t *testing.T) (pids []int) {
	t.Helper()
	for _, line := range s.lines("pids") {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

func (s scripted) signal(t *testing.T, name string) {
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
}

// peer is the server's side of it.
type peer struct {
	script, era, dir string
	in               *bufio.Reader
	calls            int
	held             []string
}

func serveScript(args []string) {
	p := &peer{script: args[0], era: args[1], dir: args[2], in: bufio.NewReader(os.Stdin)}
	p.trace("pids", fmt.Sprint(os.Getpid()))
	if p.script == "exits at once" {
		fmt.Fprintln(os.Stderr, "cannot start: no database")
		os.Exit(4)
	}
	if p.script == "noise and CRLF" {
		fmt.Print("Starting server…\n\n{this is not json\n")
	}
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			p.trace("ended", "end of input")
			return
		}
		p.take(line)
	}
}

func (p *peer) trace(name, line string) {
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	if err != nil {
		panic(err)
	}
	_ = f.Close()
}

func (p *peer) awaitSignal(name string) {
	for {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
			return
		}
		time.Sleep(tick)
	}
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string                     `json:"name"`
		Arguments json.RawMessage            `json:"arguments"`
		Meta      map[string]json.RawMessage `json:"_meta"`
		Cursor    string                     `json:"cursor"`
		Version   string                     `json:"protocolVersion"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (p *peer) take(line []byte) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		p.trace("broken", string(line[:min(len(line), 100)]))
		return
	}
	p.trace("methods", r.Method)
	switch {
	case r.Method == "":
		p.trace("answers", strings.TrimSpace(string(line)))
	case r.Method == "tools/call":
		p.calls++
		p.trace("calls", string(r.ID))
		p.onCall(r)
	case r.Method == "tools/list":
		p.list(r)
	case p.era == "exit" && r.Method == "server/discover":
		os.Exit(1)
	case p.era == "silent" && r.Method == "server/discover":
	case p.era == "slow" && r.Method == "server/discover":
		p.held = []string{string(r.ID)}
	case p.era == "slow" && r.Method == "initialize":
		p.result(request{ID: json.RawMessage(p.held[0])}, `{"supportedVersions":["2026-07-28"]}`)
		p.fail(r, -32601, "null")
	case p.era == "modern" && r.Method == "server/discover":
		p.result(r, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case p.era == "dual" && r.Method == "server/discover":
		p.fail(r, -32022, `{"supported":["2025-06-18"],"requested":"2026-07-28"}`)
	case p.era == "alien" && r.Method == "server/discover":
		p.fail(r, -32022, `{"supported":["2031-01-01"]}`)
	case p.era != "modern" && r.Method == "initialize":
		if p.script == "asks" {
			fmt.Print(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}` + "\n" + `{"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n")
		}
		version := r.Params.Version
		if p.era == "old" {
			version = "2024-11-05"
		}
		if p.era == "unheard" {
			version = "1999-01-01"
		}
		p.result(r, `{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}`)
	case r.ID != nil:
		p.fail(r, -32601, "null")
	}
}

func (p *peer) list(r request) {
	if p.script == "lists pages" && r.Params.Cursor == "" {
		p.result(r, `{"tools":[{"name":"create","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true},"x":1}],"nextCursor":"2"}`)
		return
	}
	if p.script == "lists for ever" {
		p.result(r, `{"tools":[],"nextCursor":"again"}`)
		return
	}
	p.result(r, `{"tools":[{"name":"get","description":"d","inputSchema":{}}]}`)
}

func (p *peer) result(r request, result string) {
	fmt.Print(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + "}\n")
}

func (p *peer) fail(r request, code int, data string) {
	fmt.Print(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":{"code":` + fmt.Sprint(code) + `,"message":"no","data":` + data + "}}\n")
}

const done = `{"content":[{"type":"text","text":"done"}]}`

func (p *peer) onCall(r request) {
	switch p.script {
	case "exits after reading":
		fmt.Fprintln(os.Stderr, "committed, then panic")
		os.Exit(3)
	case "crashes once":
		if len(scripted{dir: p.dir}.lines("pids")) == 1 {
			os.Exit(3)
		}
		p.result(r, done)
	case "answers without newline and exits":
		fmt.Print(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + done + `}`)
		os.Exit(0)
	case "answers and exits":
		p.result(r, done)
		os.Exit(0)
	case "wrong id":
		p.result(request{ID: json.RawMessage(`999999`)}, done)
	case "garbage":
		fmt.Print("}}}} not a message\n")
	case "truncated":
		fmt.Print(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":{"cont` + "\n")
	case "hangs":
	case "hangs with a child":
		child := exec.Command(os.Args[0], roleFlag, "sleeper")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		p.trace("pids", fmt.Sprint(child.Process.Pid))
	case "hangs on create":
		if r.Params.Name != "create" {
			p.result(r, done)
		}
	case "stops reading":
		p.result(r, done)
		p.awaitSignal("read on")
	case "closes its input":
		_ = os.Stdin.Close()
		p.result(r, done)
		select {}
	case "closes its output":
		_ = os.Stdout.Close()
		select {}
	case "noise and CRLF":
		fmt.Print("[debug] working\r\n")
		fmt.Print(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + done + "}\r\n")
	case "large":
		p.result(r, `{"content":[],"text":"`+strings.Repeat("é", 10<<20)+`"}`)
	case "too large":
		fmt.Print(strings.Repeat("x", 2<<20) + "\n")
		select {}
	case "floods stderr":
		for range 20_000 {
			fmt.Fprintln(os.Stderr, "an error line of sixty bytes or so, which nobody may ever read")
		}
		p.result(r, done)
	case "shows its environment":
		wd, _ := os.Getwd()
		fmt.Fprintln(os.Stderr, "my token is "+os.Getenv("TOKEN"))
		text, _ := json.Marshal([]string{os.Getenv("TOKEN"), os.Getenv("PLAIN"), wd})
		p.result(r, `{"env":`+string(text)+`}`)
	case "reverses":
		if p.held = append(p.held, string(r.ID)); len(p.held) == 2 {
			p.result(request{ID: json.RawMessage(p.held[1])}, `{"of":`+p.held[1]+`}`)
			p.result(request{ID: json.RawMessage(p.held[0])}, `{"of":`+p.held[0]+`}`)
		}
	case "answers late":
		p.awaitSignal("answer")
		p.result(r, done)
	case "batch":
		fmt.Print(`[{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + done + `}]` + "\n")
	case "sloppy id":
		fmt.Print(`{"jsonrpc":"2.0","error":null,"id":` + string(r.ID) + `.0,"result":` + done + "}\n")
	case "ignores everything":
		signal.Ignore(syscall.SIGTERM)
		p.result(r, done)
		for {
			time.Sleep(time.Hour)
		}
	case "echo":
		p.result(r, `{"arguments":`+string(r.Params.Arguments)+`,"meta":`+metaText(r)+`}`)
	default:
		if script, ok := strings.CutPrefix(p.script, "result "); ok {
			p.result(r, script)
			return
		}
		if script, ok := strings.CutPrefix(p.script, "error "); ok {
			fmt.Print(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":` + script + "}\n")
			return
		}
		p.result(r, done)
	}
}

func metaText(r request) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(r.Params.Meta)
	return strings.TrimSpace(b.String())
}

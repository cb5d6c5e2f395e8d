package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestEveryStepStateHasAMeaningAndAWay(t *testing.T) {
	states := contract.StepStates()
	require.Len(t, states, 13)
	reached := map[contract.StepState]bool{contract.StepPending: true}
	for range states {
		for _, from := range states {
			for _, to := range states {
				if reached[from] && from.CanBecome(to) {
					reached[to] = true
				}
			}
		}
	}
	for _, s := range states {
		require.NotEmpty(t, s.Meaning(), s)
		require.True(t, reached[s], "%s cannot be reached", s)
		require.False(t, s.CanBecome(s), "%s: staying is no transition", s)
		require.False(t, s.NeedsHuman() && !s.Settled(), s)
	}
	require.Empty(t, contract.StepState("GONE").Meaning())
	require.False(t, contract.StepState("GONE").CanBecome(contract.StepPending))
}

// What must not follow what, whatever else changes in the table.
func TestForbiddenTransitions(t *testing.T) {
	for _, c := range [][2]contract.StepState{
		{contract.StepInDoubt, contract.StepExecuting},              // never again without asking
		{contract.StepInDoubt, contract.StepCommitted},              // nor taken for done
		{contract.StepInDoubt, contract.StepFailed},                 // nor for failed
		{contract.StepCommitted, contract.StepCompensated},          // undone is proven on the way
		{contract.StepRecovered, contract.StepCompensated},          //
		{contract.StepCommitted, contract.StepExecuting},            //
		{contract.StepRecovered, contract.StepExecuting},            //
		{contract.StepCompensationFailed, contract.StepCompensated}, //
		{contract.StepNotCompensable, contract.StepCompensated},     //
		{contract.StepCompensated, contract.StepCommitted},          //
		{contract.StepSkipped, contract.StepCommitted},              //
		{contract.StepPending, contract.StepCommitted},              //
		{contract.StepUnknown, contract.StepSkipped},                //
	} {
		require.False(t, c[0].CanBecome(c[1]), "%s to %s", c[0], c[1])
	}
}

func TestInEffect(t *testing.T) {
	for state, want := range map[contract.StepState]bool{
		contract.StepPending: false, contract.StepExecuting: false, contract.StepCommitted: true, contract.StepInDoubt: false,
		contract.StepReconciling: false, contract.StepRecovered: true, contract.StepUnknown: false, contract.StepFailed: false,
		contract.StepSkipped: false, contract.StepCompensating: true, contract.StepCompensated: false,
		contract.StepCompensationFailed: true, contract.StepNotCompensable: true,
	} {
		require.Equal(t, want, state.InEffect(), state)
	}
}

// A Temporal status is a promise: Completed where effects remain, Failed where provably none does.
func TestTransactionStates(t *testing.T) {
	remain := map[contract.TxState]bool{
		contract.TxCommitted: true, contract.TxRetained: true, contract.TxPartiallyCompensated: true, contract.TxTerminated: true,
		contract.TxFailed: false, contract.TxRejected: false, contract.TxCompensated: false,
	}
	closed := 0
	for _, s := range contract.TxStates() {
		require.NotEmpty(t, s.Meaning(), s)
		require.True(t, s.Known())
		if s.Closed() {
			closed++
			require.Equal(t, remain[s], s.EffectsRemain(), s)
			require.False(t, s.NeedsHuman(), s)
		} else {
			require.False(t, s.EffectsRemain(), s)
		}
		require.Equal(t, s.Closed() || s.NeedsHuman(), contract.Snapshot{State: s}.Settled(), s)
	}
	require.Equal(t, len(remain), closed)
	require.False(t, contract.TxState("DONE").Known())
}

func TestDurationsReadAndWriteAsText(t *testing.T) {
	var d struct{ D contract.Duration }
	require.NoError(t, json.Unmarshal([]byte(`{"D":"1h30m"}`), &d))
	require.Equal(t, 90*time.Minute, d.D.Std())
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"D":"1h30m0s"}`, string(raw))
	require.ErrorContains(t, json.Unmarshal([]byte(`{"D":"15"}`), &d), "a number with a unit")
	require.Error(t, json.Unmarshal([]byte(`{"D":15}`), &d))
}

// Two projects that call something by the same name do not meet, and a rotated credential does not make another server.
func TestServerIdentity(t *testing.T) {
	stdio := func(change func(*contract.Server)) contract.Server {
		s := contract.Server{Name: "files", Stdio: &contract.StdioServer{
			Command: []string{"node", "server.js"}, Env: map[string]string{"TOKEN": "${secret:A}", "B": "2"}, Dir: "/a"}, Principal: "ops"}
		change(&s)
		return s
	}
	base := stdio(func(*contract.Server) {})
	require.Len(t, base.Identity(), 8)
	for name, same := range map[string]contract.Server{
		"another name":  stdio(func(s *contract.Server) { s.Name = "other" }),
		"another value": stdio(func(s *contract.Server) { s.Stdio.Env["TOKEN"] = "${secret:B}" }),
		"more trust":    stdio(func(s *contract.Server) { s.TrustRefusals = true }),
	} {
		require.Equal(t, base.Identity(), same.Identity(), name)
	}
	seen := map[string]string{base.Identity(): "base"}
	for name, other := range map[string]contract.Server{
		"another argument":         stdio(func(s *contract.Server) { s.Stdio.Command = []string{"node", "other.js"} }),
		"one argument of two":      stdio(func(s *contract.Server) { s.Stdio.Command = []string{"node server.js"} }),
		"another directory":        stdio(func(s *contract.Server) { s.Stdio.Dir = "/b" }),
		"another variable":         stdio(func(s *contract.Server) { s.Stdio.Env["C"] = "3" }),
		"another principal":        stdio(func(s *contract.Server) { s.Principal = "dev" }),
		"an address":               {HTTP: &contract.HTTPServer{URL: "http://127.0.0.1:1/mcp"}, Principal: "ops"},
		"another address":          {HTTP: &contract.HTTPServer{URL: "http://127.0.0.1:2/mcp"}, Principal: "ops"},
		"an address with a header": {HTTP: &contract.HTTPServer{URL: "http://127.0.0.1:1/mcp", Headers: map[string]string{"Authorization": "x"}}, Principal: "ops"},
		"an origin":                {WebMCP: &contract.WebMCPServer{Origin: "http://127.0.0.1:1/mcp"}, Principal: "ops"},
		"another profile":          {WebMCP: &contract.WebMCPServer{Origin: "http://127.0.0.1:1/mcp", Profile: "p"}, Principal: "ops"},
	} {
		id := other.Identity()
		require.NotContains(t, seen, id, name)
		seen[id] = name
	}
	require.Equal(t, "mcpx/files-"+base.Identity(), base.Ref().Queue())
}

// The digest of an undo plan covers what an approver has to see, and nothing that changes by itself.
func TestWhatAnUndoPlansDigestCovers(t *testing.T) {
	covered := func(change func(*contract.UndoPlan)) string {
		plan := contract.UndoPlan{
			Version: 1, Run: "run", Tx: "tx", Definition: "d", Published: time.Unix(1, 0),
			Waves: [][]contract.Undo{{{Step: "a", Undoes: "s/c", Tool: "s/d", Args: json.RawMessage(`{"id":1}`),
				Seen: contract.Present, Effect: json.RawMessage(`{"id":1}`), Proof: contract.ProofTx}}},
			Kept: []contract.Residue{{Step: "b", Tool: "s/m", Why: "no compensation"}},
		}
		change(&plan)
		raw, err := json.Marshal(plan.Covered())
		require.NoError(t, err)
		return string(raw)
	}
	base := covered(func(*contract.UndoPlan) {})
	require.Equal(t, base, covered(func(p *contract.UndoPlan) { p.Published, p.Expires, p.Digest = time.Unix(9, 0), time.Unix(10, 0), "x" }))
	for name, change := range map[string]func(*contract.UndoPlan){
		"version":       func(p *contract.UndoPlan) { p.Version = 2 },
		"run":           func(p *contract.UndoPlan) { p.Run = "x" },
		"transaction":   func(p *contract.UndoPlan) { p.Tx = "x" },
		"definition":    func(p *contract.UndoPlan) { p.Definition = "x" },
		"step":          func(p *contract.UndoPlan) { p.Waves[0][0].Step = "x" },
		"tool":          func(p *contract.UndoPlan) { p.Waves[0][0].Tool = "x" },
		"arguments":     func(p *contract.UndoPlan) { p.Waves[0][0].Args = json.RawMessage(`{"id":2}`) },
		"verdict":       func(p *contract.UndoPlan) { p.Waves[0][0].Seen = contract.Absent },
		"mapped result": func(p *contract.UndoPlan) { p.Waves[0][0].Effect = json.RawMessage(`{"id":2}`) },
		"proof":         func(p *contract.UndoPlan) { p.Waves[0][0].Proof = contract.ProofKey },
		"large values":  func(p *contract.UndoPlan) { p.Waves[0][0].ArgsDigest = "x" },
		"order":         func(p *contract.UndoPlan) { p.Waves = append(p.Waves, nil) },
		"residue":       func(p *contract.UndoPlan) { p.Kept = nil },
	} {
		require.NotEqual(t, base, covered(change), name)
	}
}

func TestCallIDsTellAttemptsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []contract.CallKind{contract.CallExecute, contract.CallCompensate} {
		for attempt := range 3 {
			for _, step := range []string{"a", "b"} {
				id := contract.CallID("tx", step, kind, attempt)
				require.False(t, seen[id], id)
				seen[id] = true
			}
		}
	}
}

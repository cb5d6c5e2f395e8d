package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

func paper(width int) *screen.Screen { return screen.Plainly(&bytes.Buffer{}, width) }

// requireGolden compares text with testdata/<test>.txt.
func requireGolden(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(t.Name())+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), text)
}

func TestSnapshot(t *testing.T) {
	for _, test := range []struct {
		name   string
		tx     contract.Snapshot
		width  int
		detail view.Detail
	}{
		{name: "awaiting", tx: awaiting()},
		{name: "awaiting-80", tx: awaiting(), width: 80},
		{name: "awaiting-evidence", tx: awaiting(), detail: view.Detail{Evidence: true}},
		{name: "unresolved", tx: unresolved()},
		{name: "compensated", tx: compensated()},
		{name: "compensated-evidence", tx: compensated(), detail: view.Detail{Evidence: true}},
		{name: "hostile", tx: hostile(), width: 120, detail: view.Detail{Evidence: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.detail.Now = after(3 * time.Second)
			requireGolden(t, view.Snapshot(paper(test.width), test.tx, test.detail))
		})
	}
}

func TestLive(t *testing.T) {
	tx := unresolved()
	tx.State, tx.Reason = contract.TxRunning, ""
	requireGolden(t, view.Live(paper(100), tx, view.Detail{Now: after(2 * time.Second)}))
}

func TestList(t *testing.T) {
	requireGolden(t, view.List(paper(0), []view.Row{
		{ID: "provision-workspace/4f2a9c", State: contract.TxRunning, Started: begin},
		{ID: "buchung/Zürich-東京", State: contract.TxCommitted, Started: begin, Ended: after(400 * time.Millisecond)},
		{ID: "evil/\x1b[2J", State: "\x1b[31mRED", Started: begin, Ended: after(26 * time.Hour)},
	}, after(90*time.Second)))
}

func TestPlan(t *testing.T) {
	input := json.RawMessage(`{"workspace": "acme", "size": 12345678901234567890, "token": "hunter2"}`)
	d := view.NewDryRun(provision(), input)
	t.Run("wide", func(t *testing.T) { requireGolden(t, view.Plan(paper(0), d)) })
	t.Run("narrow", func(t *testing.T) { requireGolden(t, view.Plan(paper(90), d)) })
	t.Run("inspected", func(t *testing.T) {
		d.Inspected = []view.Inspected{
			{Step: "database", Tool: "database/get_database", Args: json.RawMessage(`{"name":"acme-db"}`), Verdict: contract.Absent, Why: "NOT_FOUND"},
			{Step: "cache", Tool: "cache/get_cache", Verdict: contract.Present, Found: json.RawMessage("{\"id\":\"\u009b31m\"}")},
			{Step: "compute", Why: "its arguments are known only later"},
		}
		requireGolden(t, view.Plan(paper(0), d))
	})
}

func TestNothingHostileReachesTheScreen(t *testing.T) {
	for _, width := range []int{0, 60, 120} {
		s := paper(width)
		tx := hostile()
		for _, text := range []string{
			view.Snapshot(s, tx, view.Detail{Evidence: true}), view.Snapshot(s, tx, view.Detail{}), view.Live(s, tx, view.Detail{}),
			view.Next(s, tx), view.Undo(s, *tx.Undo), view.Headline(s, tx),
		} {
			require.False(t, strings.ContainsAny(text, "\x1b\r\x07\u009b\u202e"), "%q", text)
			for line := range strings.Lines(text) {
				require.False(t, strings.HasPrefix(line, "x  COMMITTED"), "a forged line")
			}
		}
	}
}

func TestSecretsOfADryRunAreRedacted(t *testing.T) {
	d := view.NewDryRun(provision(), json.RawMessage(`{"workspace": "acme", "size": 1, "token": "hunter2"}`))
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.Contains(t, string(text), view.Redacted)
}

func TestDryRunKeepsEveryDigit(t *testing.T) {
	d := view.NewDryRun(provision(), json.RawMessage(`{"workspace": "acme", "size": 12345678901234567890}`))
	require.JSONEq(t, `{"name":"acme-db","owner":"${tx.id}","size_gb":0,"token":"[REDACTED]"}`,
		strings.Replace(string(d.Waves[0][0].Args), "12345678901234567890", "0", 1))
}

func TestUndoWavesAreTheReverseOfWhatDependsOnWhat(t *testing.T) {
	d := view.NewDryRun(provision(), nil)
	var order [][]string
	for _, wave := range d.Undo {
		var steps []string
		for _, undo := range wave {
			steps = append(steps, undo.Step)
		}
		order = append(order, steps)
	}
	require.Equal(t, [][]string{{"compute"}, {"database", "cache"}}, order)
	require.Equal(t, []contract.Residue{{Step: "mail", Tool: "mail/send", Why: "its contract has no compensation"}}, d.Stays)
}

func TestEveryStateHasALookAndAnExitCode(t *testing.T) {
	want := map[contract.TxState]int{
		contract.TxCommitted: 0, contract.TxFailed: 1, contract.TxRejected: 1,
		contract.TxAwaitingStartApproval: 3, contract.TxAwaitingResolution: 3, contract.TxAwaitingCompensationApproval: 3,
		contract.TxCompensated: 4, contract.TxRetained: 5, contract.TxPartiallyCompensated: 5, contract.TxTerminated: 5,
		contract.TxRunning: 0, contract.TxCompensating: 0,
	}
	s := paper(0)
	for _, state := range contract.TxStates() {
		code, ok := want[state]
		require.True(t, ok, state)
		require.Equal(t, code, view.ExitCode(state), state)
		require.Equal(t, string(state), view.State(s, state))
		require.True(t, view.Looks(state), state)
	}
	require.Equal(t, 1, view.ExitCode("SOMETHING_NEW"))
	for _, state := range contract.StepStates() {
		require.Equal(t, string(state), view.StepState(s, state))
		require.True(t, view.Looks(state), state)
	}
}

func TestChangesTellWhatIsNewWithTheTimeOfTheEvent(t *testing.T) {
	var changes view.Changes
	s, now := paper(0), after(time.Minute)
	tx := awaiting()
	tx.State, tx.Reason, tx.Undo, tx.Decisions = contract.TxRunning, "", nil, nil
	for i := range tx.Steps {
		tx.Steps[i].State, tx.Steps[i].Reason, tx.Steps[i].Since, tx.Steps[i].Evidence = contract.StepPending, "", after(0), nil
	}
	database, compute := &tx.Steps[0], &tx.Steps[1]
	database.State, database.Reason, database.Since = contract.StepExecuting, "dispatched to database", after(time.Second)
	require.Equal(t, []string{
		"12:00:01.000  database  EXECUTING  dispatched to database",
		"12:00:01.000  provision-workspace/4f2a9c  RUNNING  steps are being executed",
	}, changes.Lines(s, tx, now))
	require.Empty(t, changes.Lines(s, tx, now))

	database.State, database.Reason, database.Since = contract.StepInDoubt, "no answer\x1b[2J\nCOMMITTED", after(3*time.Second)
	compute.State, compute.Reason, compute.Since = contract.StepExecuting, "dispatched to compute", after(2*time.Second)
	require.Equal(t, []string{
		`12:00:02.000  compute   EXECUTING  dispatched to compute`,
		`12:00:03.000  database  IN_DOUBT  no answer\x1b[2J COMMITTED`,
	}, changes.Lines(s, tx, now), "in the order in which they came about")

	compute.Reason = "not executed: connection refused"
	compute.Evidence = []contract.Evidence{call(contract.CallExecute, 1, "create_instance", "not_executed", 5*time.Second, "")}
	require.Equal(t, []string{"12:00:05.000  compute   EXECUTING  not executed: connection refused"}, changes.Lines(s, tx, now),
		"a new reason has the time of the call that gave it, not that of the state")
	compute.Reason = "dispatched again"
	require.Equal(t, []string{"12:01:00.000  compute   EXECUTING  dispatched again"}, changes.Lines(s, tx, now))

	tx.State, tx.Ended = contract.TxFailed, after(7*time.Second)
	lines := changes.Lines(s, tx, now)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "12:00:07.000  provision-workspace/4f2a9c  FAILED")
}

func TestWhatIsKnownIsNotToldAgain(t *testing.T) {
	var changes view.Changes
	tx := awaiting()
	changes.Known(tx)
	require.Empty(t, changes.Lines(paper(0), tx, after(time.Minute)))
	tx.Steps[2].State, tx.Steps[2].Since = contract.StepCompensating, after(2*time.Second)
	lines := changes.Lines(paper(0), tx, after(time.Minute))
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "12:00:02.000  routing   COMPENSATING")
}

func TestShortIDsKeepWhatPeopleWrote(t *testing.T) {
	fingerprint := strings.Repeat("0123456789abcdef", 4)
	require.Equal(t, "plan/0123456789ab", view.ShortID("plan/"+fingerprint))
	require.Equal(t, "plan/my own key", view.ShortID("plan/my own key"))
	require.Equal(t, "plan/"+strings.Repeat("Z", 64), view.ShortID("plan/"+strings.Repeat("Z", 64)))
	require.Empty(t, view.ShortID(""))
}

package scenario_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/stack"
)

const plan = "provision-workspace"

// exampleManifest is the manifest at the root of the repository.
func exampleManifest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "mcpx.yaml"))
	require.NoError(t, err)
	return string(text)
}

// moved is a manifest's text with the applications where they really listen.
func moved(t *testing.T, text string, s *stack.Stack) []byte {
	t.Helper()
	for kind, process := range s.Processes {
		app, err := workspace.AppOf(kind)
		require.NoError(t, err)
		text = strings.ReplaceAll(text, fmt.Sprintf("http://127.0.0.1:%d/mcp", app.Port), process.URL())
	}
	return []byte(text)
}

// A worker dies after the application has committed and before the reply is reported. Another one inspects.
func TestAWorkerKilledBeforeTheReplyIsNoReasonToCallAgain(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.fault(workspace.Routing, "create_route", workspace.Hang, 1)
	first := w.worker()
	id := w.begin(plan, `{"workspace":"acme"}`)
	w.arrived(workspace.Routing, "create_route", 1)
	require.NoError(t, first.Kill())
	<-first.Done()
	w.worker()
	s := w.until(id, contract.TxCommitted)
	require.Equal(t, contract.StepRecovered, stateOf(t, s, "routing"))
	require.EqualValues(t, 1, w.calls(workspace.Routing)["create_route"])
	require.Equal(t, everything, w.exists())
}

// What one application may do to one call, and what must come of it in the end.
func TestFaults(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.worker()
	for fault, c := range map[workspace.FaultKind]struct {
		state contract.StepState
		calls int64
	}{
		workspace.LoseAck:      {contract.StepRecovered, 1},
		workspace.LateCommit:   {contract.StepRecovered, 1},
		workspace.WrongReply:   {contract.StepRecovered, 1},
		workspace.Garbage:      {contract.StepRecovered, 1},
		workspace.ErrorAfter:   {contract.StepRecovered, 1},
		workspace.Hang:         {contract.StepRecovered, 1},
		workspace.Slow:         {contract.StepCommitted, 1},
		workspace.RefuseStatus: {contract.StepCommitted, 2},
		workspace.CrashAfter:   {contract.StepRecovered, 1},
		workspace.CrashBefore:  {contract.StepCommitted, 2},
	} {
		t.Run(string(fault), func(t *testing.T) {
			for _, app := range w.Apps {
				require.NoError(t, app.Reset(t.Context()))
			}
			f := workspace.Fault{Tool: "create_instance", Fault: fault, Calls: 1}
			switch fault {
			case workspace.LateCommit, workspace.Slow:
				f.MS = 500
			case workspace.RefuseStatus:
				f.MS = 1000
			}
			require.NoError(t, w.Apps[workspace.Compute].SetFault(t.Context(), f))
			name := strings.ReplaceAll(string(fault), "_", "-")
			id := w.begin(plan, `{"workspace":"`+name+`"}`)
			if fault == workspace.CrashAfter || fault == workspace.CrashBefore {
				<-w.Processes[workspace.Compute].Done()
				require.NoError(t, w.Processes[workspace.Compute].Restart(t.Context()))
			}
			s := w.until(id, contract.TxCommitted)
			require.Equal(t, c.state, stateOf(t, s, "compute"))
			require.Equal(t, c.calls, w.calls(workspace.Compute)["create_instance"])
			require.Equal(t, everything, w.exists())
		})
	}
}

// Starting, watching and approving need nothing but Temporal's own program.
func TestByHand(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.worker()
	w.fault(workspace.Routing, "create_route", workspace.LoseAck, 1)
	w.fault(workspace.Frontend, "deploy", workspace.Reject, 1)
	program, err := devserver.Find()
	require.NoError(t, err)
	temporal := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append(args, "--address", w.Address, "--namespace", contract.Namespace)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	const id = plan + "/by-hand"
	temporal("workflow", "start", "--type", contract.WorkflowTransaction, "--task-queue", contract.TaskQueue,
		"--workflow-id", id, "--input", `{"plan":"provision-workspace","input":{"workspace":"acme"}}`)
	s := w.until(id, contract.TxAwaitingCompensationApproval)
	require.Contains(t, strings.Join(s.Notes, "\n"), "by hand")
	require.Equal(t, contract.StepRecovered, stateOf(t, s, "routing"))
	temporal("workflow", "signal", "--workflow-id", id, "--name", contract.SignalApproveCompensation, "--input", `{"by":"me"}`)
	s = w.until(id, contract.TxCompensated)
	require.Equal(t, none, w.exists())
	require.EqualValues(t, 1, w.calls(workspace.Routing)["create_route"])
	require.Equal(t, "me", s.Decisions[len(s.Decisions)-1].Decision.By)
}

// Two workers share the work of many transactions; nothing happens twice.
func TestTwoWorkersShareTheWork(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.worker()
	w.worker()
	const n = 10
	for _, kind := range []workspace.Kind{workspace.Database, workspace.Compute, workspace.Routing} {
		app, err := workspace.AppOf(kind)
		require.NoError(t, err)
		w.fault(kind, app.Tools()[0], workspace.LoseAck, 3)
	}
	ids := make([]string, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { ids[i] = w.begin(plan, fmt.Sprintf(`{"workspace":"w%d"}`, i)) })
	}
	group.Wait()
	for _, id := range ids {
		w.until(id, contract.TxCommitted)
	}
	for kind, count := range w.exists() {
		require.Equal(t, n, count, kind)
	}
}

// A Temporal reset re-runs old commands and re-applies old signals. Nothing may be repeated, and nothing approved by it.
func TestResetRepeatsNothingAndApprovesNothing(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.worker()
	w.fault(workspace.Frontend, "deploy", workspace.Reject, 1)
	id := w.begin(plan, `{"workspace":"acme"}`)
	w.approve(id)
	w.until(id, contract.TxCompensated)
	before := map[workspace.Kind]map[string]int64{}
	for kind := range w.Apps {
		before[kind] = w.calls(kind)
	}

	s, err := w.Client.Snapshot(t.Context(), id)
	require.NoError(t, err)
	_, err = w.Client.Temporal().WorkflowService().ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 contract.Namespace,
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: id, RunId: s.Run},
		WorkflowTaskFinishEventId: w.firstTask(id, s.Run),
		RequestId:                 "reset",
	})
	require.NoError(t, err)
	w.when(id, "the end of the reset run", func(now contract.Snapshot) bool { return now.Run != s.Run && now.State.Closed() })
	for kind, app := range w.Apps {
		for tool, n := range before[kind] {
			if strings.HasPrefix(tool, "get_") || strings.HasPrefix(tool, "list_") {
				continue
			}
			calls, err := app.Calls(t.Context())
			require.NoError(t, err)
			require.Equal(t, n, calls[tool], "%s was called again", tool)
		}
	}
	require.Equal(t, none, w.exists())
}

// firstTask finds the first workflow task that was completed.
func (w *world) firstTask(id, run string) int64 {
	w.t.Helper()
	history := w.Client.Temporal().GetWorkflowHistory(w.t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(w.t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.GetEventId()
		}
	}
	w.t.Fatal("no workflow task was completed")
	return 0
}

// The Temporal UI's cancel button means abort: what is in flight settles, then a human is asked.
func TestCancellationSettlesThenAsks(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.worker()
	w.fault(workspace.Compute, "create_instance", workspace.Hang, 1)
	id := w.begin(plan, `{"workspace":"acme"}`)
	w.arrived(workspace.Compute, "create_instance", 1)
	require.NoError(t, w.Client.Temporal().CancelWorkflow(t.Context(), id, ""))
	s := w.until(id, contract.TxAwaitingCompensationApproval)
	require.Equal(t, contract.StepRecovered, stateOf(t, s, "compute"), "the call in flight was not abandoned")
	require.Equal(t, contract.StepSkipped, stateOf(t, s, "routing"))
	w.approve(id)
	w.until(id, contract.TxCompensated)
	require.Equal(t, none, w.exists())
}

// A server that cannot be reached: provably nothing happened.
func TestAnUnreachableServerIsAFailureWithoutDoubt(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.Processes[workspace.Frontend].Kill()
	w.worker()
	id := w.begin(plan, `{"workspace":"acme"}`)
	s := w.until(id, contract.TxAwaitingCompensationApproval)
	frontend, _ := s.Step("frontend")
	require.Equal(t, contract.StepFailed, frontend.State)
	require.Contains(t, frontend.Reason, "not executed")
	require.Contains(t, frontend.Reason, "refused")
	w.approve(id)
	w.until(id, contract.TxCompensated)
}

// A stdio server that cannot be started says which program, and why.
func TestAStdioServerThatCannotBeStarted(t *testing.T) {
	w := start(t, `version: 1
servers: {broken: {stdio: {command: [/no/such/program, --flag]}}}
tools: {broken/do: {inspect: {tool: look, present: "true", absent: "false"}, compensate: {tool: undo}}}
plans: [{name: one, steps: [{id: a, tool: broken/do}]}]
`)
	w.worker()
	s := w.until(w.begin("one", `{}`), contract.TxFailed)
	step, _ := s.Step("a")
	require.Contains(t, step.Reason, "/no/such/program")
}

// Numbers keep every digit, and text every character, from input to application and receipt.
func TestNumbersAndTextsAreExact(t *testing.T) {
	w := start(t, `version: 1
servers: {database: {http: {url: "http://127.0.0.1:9101/mcp"}}}
tools:
  database/create_database:
    inspect: {tool: get_database, args: {name: "${args.name}"}, present: response.owner == tx.id, absent: error.code == "NOT_FOUND", result: {id: "${response.id}", size: "${response.size_gb}"}}
    compensate: {tool: delete_database, args: {id: "${result.id}"}}
plans:
  - name: gründe-日本
    key: [name]
    steps: [{id: データ, tool: database/create_database, args: {name: "${input.name}", owner: "${tx.id}", size_gb: "${input.size}"}}]
`)
	w.worker()
	const name = "añb 日本 🙂 \\\" <&>\u2028"
	input, err := json.Marshal(map[string]any{"name": name, "size": json.Number("9007199254740993")})
	require.NoError(t, err)
	w.fault(workspace.Database, "create_database", workspace.LoseAck, 1)
	id := w.begin("gründe-日本", string(input))
	s := w.until(id, contract.TxCommitted)
	step, ok := s.Step("データ")
	require.True(t, ok)
	require.Contains(t, string(step.Result.Value), "9007199254740993")
	resources, err := w.Apps[workspace.Database].Resources(t.Context())
	require.NoError(t, err)
	require.Len(t, resources, 1)
	require.Equal(t, name, resources[0].Name)
	require.Equal(t, "9007199254740993", string(bytes.TrimSpace(resources[0].Fields["size_gb"])))
	receipt, err := w.Client.Receipt(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, contract.TxCommitted, receipt.State)
}

// A start that cannot be resolved fails at once, says why, and has called nobody.
func TestAStartThatCannotBeResolved(t *testing.T) {
	w := start(t, exampleManifest(t))
	w.worker()
	for name, c := range map[string]struct{ input, want string }{
		"unknown plan":      {`{"plan":"provision-workspac","input":{"workspace":"acme"}}`, "provision-workspace"},
		"missing input":     {`{"plan":"provision-workspace"}`, "workspace"},
		"input of bad type": {`{"plan":"provision-workspace","input":{"workspace":7}}`, "workspace"},
		"unknown member":    {`{"plan":"provision-workspace","input":{"workspace":"a","wörkspace":"b"}}`, "wörkspace"},
	} {
		t.Run(name, func(t *testing.T) {
			id := plan + "/" + strings.ReplaceAll(name, " ", "-")
			startByHand(t, w, id, json.RawMessage(c.input))
			s := w.until(id, contract.TxRejected)
			require.Contains(t, s.Reason, c.want)
		})
	}
	require.Equal(t, none, w.exists())
}

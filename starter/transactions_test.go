package starter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
)

func TestStartCarriesAnIntentOutOnce(t *testing.T) {
	s := running(t)
	var first, again sdk.Started

	r := s.mcpx(t, "start", "provision-workspace", "-i", "workspace=once", "--wait").requireCode(t, 0)
	require.Contains(t, r.out, "COMMITTED")
	require.Contains(t, r.err, "routing", "progress goes to standard error")
	require.NotContains(t, r.err, "\x1b", "no live table without a terminal")

	s.mcpx(t, "start", "provision-workspace", "-i", "workspace=once", "--json").requireCode(t, 0).decode(t, &first)
	require.Equal(t, sdk.Replayed, first.How)
	r = s.mcpx(t, "start", "provision-workspace", "-i", "workspace=once", "--wait").requireCode(t, 0)
	require.Contains(t, r.out, "Replayed")
	calls, err := s.Apps[workspace.Routing].Calls(t.Context())
	require.NoError(t, err)

	r = s.mcpx(t, "start", "provision-workspace", "-i", "workspace=once", "-i", "size_gb=20").requireCode(t, 6)
	require.Contains(t, r.err, "another size_gb")
	after, err := s.Apps[workspace.Routing].Calls(t.Context())
	require.NoError(t, err)
	require.Equal(t, calls, after, "a conflict calls nothing")

	s.mcpx(t, "start", "provision-workspace", "-i", "workspace=once", "--again", "--json").requireCode(t, 0).decode(t, &again)
	require.Equal(t, sdk.StartedNew, again.How)
	require.NotEqual(t, first.Run, again.Run)

	own := s.started(t, "once", "--id", "my own key")
	require.Equal(t, contract.PlanWorkflowID("provision-workspace", "my own key"), own)
	r = s.mcpx(t, "status", own, "--watch").requireCode(t, 0)
	require.Contains(t, r.out, "COMMITTED")
}

func TestStartWithoutWaitingSaysHowToWatch(t *testing.T) {
	s := running(t)
	s.fault(t, workspace.Database, "create_database", workspace.Slow, 1, 300)
	r := s.mcpx(t, "start", "provision-workspace", "-i", "workspace=unwatched", "--id", "it's").requireCode(t, 0)
	require.Contains(t, r.out, "mcpx status "+screen.Shell(contract.PlanWorkflowID("provision-workspace", "it's"))+" --watch")
	r = s.mcpx(t, "start", "provision-workspace", "-i", "workspace=unwatched", "--id", "it's", "--wait").requireCode(t, 0)
	require.Contains(t, r.err, "attached")
}

func TestAFailedTransactionEndsWithCode1(t *testing.T) {
	s := running(t)
	s.fault(t, workspace.Database, "create_database", workspace.Reject, 1, 0)
	r := s.mcpx(t, "start", "provision-workspace", "-i", "workspace=failed", "--wait").requireCode(t, 1)
	require.Contains(t, r.out, "FAILED")
	require.NotContains(t, r.err, "mcpx:", "the outcome is no error of the command")
	id := strings.Fields(r.out)[0]
	r = s.mcpx(t, "receipt", id).requireCode(t, 1)
	require.Contains(t, r.out, contract.ReceiptFormat)
}

func TestAWaitingTransactionSaysWhatToType(t *testing.T) {
	s := running(t)
	id := s.waiting(t, "asking")
	tx := s.state(t, id)
	digest := tx.Undo.Digest[:12]

	r := s.mcpx(t, "status", id).requireCode(t, 0)
	require.Contains(t, r.out, "mcpx approve "+id+" --digest "+digest)
	require.Contains(t, r.out, "mcpx reject "+id)
	require.Contains(t, r.out, "mcpx resume "+id)
	require.Contains(t, r.out, "routing/delete_route")
	require.NotContains(t, r.out, "Evidence")
	r = s.mcpx(t, "status", id, "-v").requireCode(t, 0)
	require.Contains(t, r.out, "Evidence")

	r = s.mcpx(t, "status", id[:len(id)-10], "--watch").requireCode(t, 3)
	require.Contains(t, r.out, string(contract.TxAwaitingCompensationApproval))
	r = s.mcpx(t, "receipt", id).requireCode(t, 3)
	require.Contains(t, r.err, "not closed")
	require.Eventually(t, func() bool {
		listed := s.mcpx(t, "list", "--state", "awaiting-compensation-approval").requireCode(t, 0)
		return strings.Contains(listed.out, id[:len(id)-52])
	}, wait, poll)

	s.mcpx(t, "reject", id).requireCode(t, 0)
}

func TestApprovalNeedsThePlanToBeSeen(t *testing.T) {
	s := running(t)
	id := s.waiting(t, "approved")

	r := s.mcpx(t, "approve", id).requireCode(t, 2)
	require.Contains(t, r.err, "--digest")
	r = s.as(t, typed{interactive: true, stdin: "n\n"}, "approve", id).requireCode(t, 1)
	require.Contains(t, r.err, "routing/delete_route", "the plan is shown before the question")
	require.Contains(t, r.err, "nothing was sent")
	r = s.as(t, typed{interactive: true}, "approve", id).requireCode(t, 1)
	require.Contains(t, r.err, "nothing was sent", "no answer is no")
	r = s.mcpx(t, "approve", id, "--digest", "000000000000").requireCode(t, 1)
	require.Contains(t, r.err, "not accepted")
	require.Equal(t, contract.TxAwaitingCompensationApproval, s.state(t, id).State)

	r = s.as(t, typed{interactive: true, stdin: "yes\n"}, "approve", id, "--reason", "\x1b[2Jlooks right", "--wait").requireCode(t, 4)
	require.Contains(t, r.out, "COMPENSATED")
	_, progress, _ := strings.Cut(r.err, "[y/N]")
	require.Contains(t, progress, "COMPENSATING")
	require.NotContains(t, progress, "COMMITTED", "what had happened before is not told again")
	r = s.mcpx(t, "receipt", id).requireCode(t, 4)
	require.Contains(t, r.out, `\x1b[2Jlooks right`)
	require.NotContains(t, r.out, "\x1b")
	require.Contains(t, r.out, "tester", "who approved is recorded")
	for _, kind := range []workspace.Kind{workspace.Database, workspace.Compute, workspace.Routing, workspace.Frontend} {
		resources, err := s.Apps[kind].Resources(t.Context())
		require.NoError(t, err)
		for _, resource := range resources {
			require.NotContains(t, resource.Name, "approved-")
		}
	}

	for _, again := range [][]string{{"approve", id}, {"approve", id, "--digest", "000000000000"}, {"reject", id}, {"resume", id}, {"abort", id}} {
		r = s.mcpx(t, again...).requireCode(t, 1)
		require.Contains(t, r.err, "COMPENSATED", again)
	}
}

func TestApprovalByDigestAndByYes(t *testing.T) {
	s := running(t)
	id := s.waiting(t, "digest")
	var judged struct {
		contract.Judged
		Snapshot contract.Snapshot
	}
	s.mcpx(t, "approve", id, "--digest", s.state(t, id).Undo.Digest[:12], "--wait", "--json").requireCode(t, 4).decode(t, &judged)
	require.True(t, judged.Accepted)
	require.Equal(t, contract.TxCompensated, judged.Snapshot.State)

	id = s.waiting(t, "yes")
	s.mcpx(t, "approve", id, "--yes", "--wait", "--by", "alice").requireCode(t, 4)
}

func TestADeclinedRollbackEndsWithCode5(t *testing.T) {
	s := running(t)
	id := s.waiting(t, "retained")
	r := s.mcpx(t, "reject", id, "--reason", "we want to look", "--wait").requireCode(t, 5)
	require.Contains(t, r.out, "RETAINED")
	s.mcpx(t, "receipt", id).requireCode(t, 5)
	s.mcpx(t, "status", id).requireCode(t, 0)
}

func TestResumeTriesAgain(t *testing.T) {
	s := running(t)
	id := s.waiting(t, "resumed")
	r := s.mcpx(t, "resume", id, "--wait").requireCode(t, 0)
	require.Contains(t, r.out, "COMMITTED")
}

func TestAnUnknownStepIsResolvedByAHuman(t *testing.T) {
	s := running(t)
	s.fault(t, workspace.Routing, "create_route", workspace.LoseAck, 1, 0)
	s.fault(t, workspace.Routing, "get_route", workspace.RefuseStatus, 100, 0)
	id := s.started(t, "unknown")
	r := s.mcpx(t, "status", id, "--watch").requireCode(t, 3)
	require.Contains(t, r.out, "AWAITING_RESOLUTION")
	require.Contains(t, r.out, "mcpx resolve "+id+" routing --as inspect --reason WHY")

	r = s.mcpx(t, "approve", id).requireCode(t, 1)
	require.Contains(t, r.err, "mcpx resolve")
	r = s.mcpx(t, "resolve", id, "frontend", "--as", "absent", "--reason", "r").requireCode(t, 1)
	require.Contains(t, r.err, "nothing to resolve")

	committed := []string{"resolve", id, "routing", "--as", "committed", "--reason", "r"}
	r = s.mcpx(t, committed...).requireCode(t, 2)
	require.Contains(t, r.err, "${steps.routing.result.route_id} (step frontend)")
	require.Contains(t, r.err, "--result")
	require.Equal(t, contract.TxAwaitingResolution, s.state(t, id).State, "nothing was sent")

	require.NoError(t, s.Apps[workspace.Routing].ClearFaults(t.Context()))
	r = s.mcpx(t, "resolve", id, "routing", "--as", "inspect", "--reason", "it is back", "--wait").requireCode(t, 0)
	require.Contains(t, r.out, "RECOVERED")
}

func TestAbortSettlesAndAsks(t *testing.T) {
	s := running(t)
	s.fault(t, workspace.Compute, "create_instance", workspace.Slow, 1, 700)
	id := s.started(t, "aborted")
	r := s.mcpx(t, "abort", id, "--reason", "changed our minds", "--wait").requireCode(t, 3)
	require.Contains(t, r.out, "changed our minds")
	require.Contains(t, r.out, "SKIPPED")
	s.mcpx(t, "approve", id, "--yes", "--wait").requireCode(t, 4)
}

func TestATerminatedTransactionEndsWithCode5(t *testing.T) {
	s := running(t)
	s.fault(t, workspace.Database, "create_database", workspace.Slow, 1, 1500)
	id := s.started(t, "terminated")
	require.NoError(t, s.Client.Temporal().TerminateWorkflow(t.Context(), id, "", "somebody pulled the plug"))
	r := s.mcpx(t, "status", id, "--watch").requireCode(t, 5)
	require.Contains(t, r.out, "TERMINATED")
	s.mcpx(t, "receipt", id).requireCode(t, 5)
	r = s.mcpx(t, "start", "provision-workspace", "-i", "workspace=terminated").requireCode(t, 5)
	require.Contains(t, r.err, "effects")
}

func TestWatchWritesOneSnapshotALineForPrograms(t *testing.T) {
	s := running(t)
	id := s.started(t, "lines")
	r := s.mcpx(t, "status", id, "--watch", "--json").requireCode(t, 0)
	var last contract.Snapshot
	for line := range strings.Lines(r.out) {
		require.NoError(t, json.Unmarshal([]byte(line), &last))
	}
	require.Equal(t, contract.TxCommitted, last.State)
}

func TestTheBeginningOfAnIDWillDo(t *testing.T) {
	s := running(t)
	for _, key := range []string{"prefix-one", "prefix-two", "prefix-two-and-a-half"} {
		id := s.started(t, "prefix", "--id", key)
		s.mcpx(t, "status", id, "--watch").requireCode(t, 0)
	}
	require.Eventually(t, func() bool {
		listed := s.mcpx(t, "list", "--limit", "1000").requireCode(t, 0)
		return strings.Count(listed.out, "/prefix-") == 3
	}, wait, poll)
	r := s.mcpx(t, "status", "provision-workspace/prefix-o").requireCode(t, 0)
	require.Contains(t, r.out, "prefix-one")
	r = s.mcpx(t, "status", "provision-workspace/prefix-two").requireCode(t, 0)
	require.NotContains(t, r.out, "half", "a whole ID means itself")
	r = s.mcpx(t, "status", "provision-workspace/prefix-").requireCode(t, 2)
	require.Contains(t, r.err, "prefix-one, ")
	r = s.mcpx(t, "status", "provision-workspace/nothing").requireCode(t, 2)
	require.Contains(t, r.err, "mcpx list")
	s.mcpx(t, "status", "").requireCode(t, 2)
}

func TestListFilters(t *testing.T) {
	s := running(t)
	id := s.started(t, "listed", "--id", "listed")
	s.mcpx(t, "status", id, "--watch").requireCode(t, 0)
	require.Eventually(t, func() bool {
		var listing sdk.Listing
		s.mcpx(t, "list", "--plan", "provision-workspace", "--tool", "frontend/deploy", "--state", "committed", "--limit", "500", "--json").requireCode(t, 0).decode(t, &listing)
		for _, tx := range listing.Transactions {
			if tx.ID == id {
				return true
			}
		}
		return false
	}, wait, poll)
	r := s.mcpx(t, "list", "--limit", "1").requireCode(t, 0)
	require.Len(t, strings.Split(strings.TrimSpace(r.out), "\n"), 2, "a title and one row")
	require.Contains(t, r.err, "there are more")
	r = s.mcpx(t, "list", "--plan", "nothing").requireCode(t, 0)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "no transactions")
	require.JSONEq(t, `{"transactions": []}`, s.mcpx(t, "list", "--plan", "nothing", "--json").requireCode(t, 0).out)
}

func TestPlanAsksTheOwners(t *testing.T) {
	s := running(t)
	verdicts := func() (all []contract.Verdict) {
		var d struct {
			Inspected []struct{ Verdict contract.Verdict }
		}
		s.mcpx(t, "plan", "provision-workspace", "-i", "workspace=inspected", "--inspect", "--json").requireCode(t, 0).decode(t, &d)
		for _, seen := range d.Inspected {
			all = append(all, seen.Verdict)
		}
		return all
	}
	absent := []contract.Verdict{contract.Absent, contract.Absent, contract.Absent, contract.Absent}
	require.Equal(t, absent, verdicts())
	s.mcpx(t, "start", "provision-workspace", "-i", "workspace=inspected", "--wait").requireCode(t, 0)
	for _, verdict := range verdicts() {
		require.Equal(t, contract.Inconclusive, verdict, "what is there is no future transaction's own")
	}
}

func TestDoctor(t *testing.T) {
	s := running(t)
	require.Eventually(t, func() bool { // a worker polls every queue within a moment
		return s.mcpx(t, "doctor").code == 0
	}, wait, poll)
	var findings []struct{ Check, Health, What string }
	s.mcpx(t, "doctor", "--json").requireCode(t, 0).decode(t, &findings)
	checks := map[string]string{}
	for _, f := range findings {
		checks[f.Check] = f.Health
	}
	for _, check := range []string{"Temporal", "namespace", "search attributes", "server routing", "queue mcpx"} {
		require.Equal(t, "ok", checks[check], check)
	}

	r := s.mcpx(t, "doctor", "--namespace", "nowhere").requireCode(t, 1)
	require.Contains(t, r.out, "nowhere")

	r = typed{}.mcpx(t, "doctor", "--address", s.Address, "--manifest", write(t, "mcpx.yaml", anything)).requireCode(t, 1)
	require.Regexp(t, `server box +bad`, r.out)
	require.Contains(t, r.out, "mcpx worker", "nobody polls that server's queue")
}

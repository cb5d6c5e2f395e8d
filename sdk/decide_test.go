package sdk

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestDecisionIsJudgedByAWorker(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	type decide func(context.Context, string, contract.Decision) (contract.Judged, error)
	for signal, decide := range map[string]decide{
		contract.SignalApproveStart:        c.ApproveStart,
		contract.SignalRejectStart:         c.RejectStart,
		contract.SignalApproveCompensation: c.Approve,
		contract.SignalRejectCompensation:  c.Reject,
		contract.SignalResume:              c.Resume,
		contract.SignalAbort:               c.Abort,
	} {
		judged, err := decide(t.Context(), id, contract.Decision{By: "alice"})
		require.NoError(t, err, signal)
		require.True(t, judged.Accepted)
		require.Equal(t, signal, judged.Signal)
		require.Equal(t, "alice", judged.Decision.By)
	}
	require.Zero(t, n.total()["SignalWorkflowExecution"])
}

func TestDecisionThatDoesNotCountSaysWhy(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	for _, test := range []struct {
		decision contract.Decision
		why      string
	}{
		{contract.Decision{By: "alice", Digest: "stale-1"}, "it names another plan"},            // by the validator
		{contract.Decision{By: "alice", Reason: "changed its mind"}, "it was approved already"}, // by the handler
		{contract.Decision{By: "nobody-important"}, "nobody important may not decide"},          // by the handler
		{contract.Decision{By: " "}, "nobody is named"},                                         // before it is sent
	} {
		_, err := c.Approve(t.Context(), id, test.decision)
		require.ErrorIs(t, err, ErrNotAccepted)
		require.ErrorContains(t, err, test.why)
		require.ErrorContains(t, err, id)
	}
	require.Zero(t, n.total()["SignalWorkflowExecution"], "what was refused is not sent once more")
}

func TestWithoutAWorkerTheSignalIsEnough(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, "")
	id := mustStart(t, c, r).ID
	judged, err := c.Abort(t.Context(), id, contract.Decision{Reason: "wrong customer"})
	require.NoError(t, err)
	require.False(t, judged.Accepted)
	require.Equal(t, Sent, judged.Why)
	require.Equal(t, "wrong customer", judged.Decision.Reason)
	require.Zero(t, n.total()["UpdateWorkflowExecution"], "nobody polls, and the server says so")

	host(t, c, r.TaskQueue)
	require.Eventually(t, func() bool {
		snapshot, err := c.Snapshot(t.Context(), id)
		return err == nil && len(snapshot.Decisions) == 1 && snapshot.Decisions[0].Decision.Reason == "wrong customer"
	}, patience, tick)
}

func TestWorkerThatDoesNotAnswerDoesNotLoseTheDecision(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	stop := host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	requireState(t, c, id, contract.TxRunning)
	stop() // and the server believes that it polls
	c.updateWait = 30 * tick
	judged, err := c.Approve(t.Context(), id, contract.Decision{By: "alice"})
	require.NoError(t, err)
	require.Equal(t, Sent, judged.Why)
	host(t, c, r.TaskQueue)
	require.Eventually(t, func() bool {
		snapshot, err := c.Snapshot(t.Context(), id)
		return err == nil && len(snapshot.Decisions) > 0
	}, patience, tick)
}

func TestUpdatesThatHangDoNotLockTheHumanOut(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	impatient, _ := connect(t, contract.Namespace)
	impatient.updateWait = 50 * tick
	var all sync.WaitGroup
	for range 12 { // more than the server takes at a time
		all.Go(func() {
			if _, err := impatient.update(t.Context(), id, contract.SignalAbort, contract.Decision{By: "sleeper"}); err == nil {
				t.Error("answered")
			}
		})
	}
	all.Wait()
	judged, err := c.Approve(t.Context(), id, contract.Decision{By: "alice"})
	require.NoError(t, err)
	require.Equal(t, Sent, judged.Why)
	require.Eventually(t, func() bool {
		snapshot, err := c.Snapshot(t.Context(), id)
		return err == nil && len(snapshot.Decisions) == 1 && snapshot.Decisions[0].Decision.By == "alice"
	}, patience, tick)
}

func TestClosedTransactionTakesNoDecision(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "COMPENSATED"`)
	host(t, c, r.TaskQueue)
	id := mustEnd(t, c, r).ID
	_, err := c.Approve(t.Context(), id, contract.Decision{By: "alice"})
	require.ErrorIs(t, err, ErrNotAccepted)
	require.ErrorContains(t, err, "the transaction is closed: COMPENSATED")
}

func TestResolutionIsAboutTheStepAsItStands(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	started := mustStart(t, c, r)
	judged, err := c.Resolve(t.Context(), started.ID, contract.Decision{By: "alice", Step: "route", As: contract.ResolveAbsent, Reason: "I looked"})
	require.NoError(t, err)
	require.Equal(t, started.Run, judged.Decision.Run)
	require.Equal(t, 1, judged.Decision.Attempt)

	named := contract.Decision{By: "alice", Step: "route", As: contract.ResolveAbsent, Run: "another", Attempt: 3}
	judged, err = c.Resolve(t.Context(), started.ID, named)
	require.NoError(t, err)
	require.Equal(t, named, judged.Decision, "what the human named stays")
}

func TestDecisionsThatNoWorkerWouldAcceptAreNotSent(t *testing.T) {
	for _, test := range []struct {
		signal   string
		decision contract.Decision
		why      string
	}{
		{"approve", contract.Decision{By: "alice"}, "approve-compensation"},
		{contract.SignalApproveCompensation, contract.Decision{}, "nobody is named"},
		{contract.SignalResolveStep, contract.Decision{By: "alice", As: contract.ResolveAbsent}, "no step"},
		{contract.SignalResolveStep, contract.Decision{By: "alice", Step: "route", As: "gone"}, `not "gone"`},
		{contract.SignalResolveStep, contract.Decision{By: "alice", Step: "route", As: contract.ResolveRetry}, ""},
		{contract.SignalAbort, contract.Decision{}, ""},
	} {
		err := checkDecision("p/k", test.signal, test.decision)
		if test.why == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrNotAccepted)
		require.ErrorContains(t, err, test.why)
	}
}

func TestPendingNamesTheServerThatNobodyServes(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	id := mustStart(t, c, r).ID
	pending, err := c.Pending(t.Context(), id)
	require.NoError(t, err)
	require.True(t, pending.Deciding)
	require.Len(t, pending.Missing(), 1)
	require.Equal(t, "no worker for workflows on task queue "+r.TaskQueue, pending.Missing()[0].Why())

	host(t, c, r.TaskQueue)
	queue := contract.ServerRef{Name: "billing-api", ID: "0a1b2c3d"}.Queue()
	tell(t, c, id, script{Call: queue})
	tell(t, c, id, script{Call: queue + "@laptop"})
	require.Eventually(t, func() bool {
		pending, err = c.Pending(t.Context(), id)
		return err == nil && len(pending.Calls) == 2
	}, patience, tick)
	require.Equal(t, contract.ActivityExecute, pending.Calls[0].Call)
	require.False(t, pending.Calls[0].Begun)
	require.Equal(t, 1, pending.Calls[0].Attempt)
	require.WithinDuration(t, time.Now(), pending.Calls[0].Since, time.Hour)
	require.Equal(t, r.TaskQueue, pending.Queues[0].Name)
	require.NotEmpty(t, pending.Queues[0].Workers)
	missing := pending.Missing()
	require.Len(t, missing, 2)
	for _, q := range missing {
		require.Equal(t, "billing-api-0a1b2c3d", q.Server)
		require.True(t, strings.HasPrefix(q.Why(), "no worker for billing-api on task queue mcpx/billing-api-0a1b2c3d"), q.Why())
	}

	tell(t, c, id, script{State: contract.TxCommitted})
	requireClosed(t, c, id)
	pending, err = c.Pending(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, pending.Calls)
	require.Empty(t, pending.Missing())
}

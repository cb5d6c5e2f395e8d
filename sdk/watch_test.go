package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/mcpx-go/mcpx/contract"
)

// watcher collects what a Watch shows.
type watcher struct {
	mu   sync.Mutex
	seen []contract.Snapshot
	done chan error
}

func watch(ctx context.Context, t *testing.T, c *Client, id string) *watcher {
	t.Helper()
	w := &watcher{done: make(chan error, 1)}
	go func() {
		w.done <- c.Watch(ctx, id, func(s contract.Snapshot) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, s)
			return nil
		})
	}()
	return w
}

func (w *watcher) last() contract.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 {
		return contract.Snapshot{}
	}
	return w.seen[len(w.seen)-1]
}

func (w *watcher) reaches(t *testing.T, state contract.TxState) {
	t.Helper()
	require.Eventually(t, func() bool { return w.last().State == state }, patience, tick, "%s", state)
}

func (w *watcher) ends(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.done:
		return err
	case <-time.After(patience):
		require.Fail(t, "the watch did not end")
		return nil
	}
}

// leave makes a scripted transaction continue as a new run.
func leave(t *testing.T, c *Client, id string) {
	t.Helper()
	newest := func() string {
		described, err := c.describe(t.Context(), id, "")
		require.NoError(t, err)
		return described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	before := newest()
	tell(t, c, id, script{Leave: true})
	require.Eventually(t, func() bool { return newest() != before }, patience, tick)
}

func TestWatchShowsEachChangeUntilTheEnd(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	w := watch(t.Context(), t, c, id)
	states := []contract.TxState{contract.TxRunning, contract.TxAwaitingResolution, contract.TxCompensating, contract.TxCompensated}
	w.reaches(t, states[0])
	for _, state := range states[1:] {
		tell(t, c, id, script{State: state})
		w.reaches(t, state)
	}
	require.NoError(t, w.ends(t))
	for i, s := range w.seen {
		require.Equal(t, states[i], s.State)
		require.Equal(t, i, s.Transitions)
	}
	require.Len(t, w.seen, len(states))
}

func TestWatchOfAClosedTransactionShowsItOnce(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, `"state": "COMMITTED"`)
	stop := host(t, c, r.TaskQueue)
	id := mustEnd(t, c, r).ID
	stop()
	w := watch(t.Context(), t, c, id)
	require.NoError(t, w.ends(t))
	require.Len(t, w.seen, 1)
	require.Equal(t, contract.TxCommitted, w.last().State)
	require.Zero(t, n.mostPolls)
}

func TestWatchFollowsATransactionIntoItsNextRun(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	started := mustStart(t, c, r)
	w := watch(t.Context(), t, c, started.ID)
	w.reaches(t, contract.TxRunning)
	for _, state := range []contract.TxState{contract.TxAwaitingResolution, contract.TxCompensating} {
		leave(t, c, started.ID)
		tell(t, c, started.ID, script{State: state})
		w.reaches(t, state)
	}
	require.NotEqual(t, started.Run, w.last().Run)
	require.Equal(t, started.Run, w.last().Tx)
	leave(t, c, started.ID)
	tell(t, c, started.ID, script{State: contract.TxCompensated})
	require.NoError(t, w.ends(t))
	require.Equal(t, contract.TxCompensated, w.last().State)

	// A later start finds what the whole chain was started with.
	require.Equal(t, Replayed, mustStart(t, c, r).How)
	changed := ask(t, `"size": 1`)
	_, err := c.Start(t.Context(), changed)
	require.ErrorIs(t, err, ErrConflict)
}

func TestWatchFollowsAReset(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	started := mustStart(t, c, r)
	w := watch(t.Context(), t, c, started.ID)
	tell(t, c, started.ID, script{State: contract.TxAwaitingResolution})
	w.reaches(t, contract.TxAwaitingResolution)
	_, err := c.Temporal().ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: c.namespace, WorkflowExecution: execution(started.ID, ""), RequestId: uuid.NewString(),
		WorkflowTaskFinishEventId: 4, Reason: "test",
		ResetReapplyExcludeTypes: []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL},
	})
	require.NoError(t, err)
	w.reaches(t, contract.TxRunning)
	tell(t, c, started.ID, script{State: contract.TxCommitted})
	require.NoError(t, w.ends(t))
	require.Equal(t, contract.TxCommitted, w.last().State)
	require.Equal(t, Replayed, mustStart(t, c, r).How)

	// The run that was reset away is not a transaction of its own.
	listing, err := c.List(t.Context(), ListFilter{Plan: r.Plan})
	require.NoError(t, err)
	require.Len(t, listing.Transactions, 1)
	require.Equal(t, contract.TxCommitted, listing.Transactions[0].State)
}

func TestWatchEndsWithWhatWasEndedFromOutside(t *testing.T) {
	for _, served := range []bool{true, false} {
		t.Run(fmt.Sprintf("with a worker %t", served), func(t *testing.T) {
			c, _ := connect(t, contract.Namespace)
			c.queryWait = 20 * tick
			r := ask(t, "")
			stop := host(t, c, r.TaskQueue)
			started := mustStart(t, c, r)
			w := watch(t.Context(), t, c, started.ID)
			require.Eventually(t, func() bool { return len(w.last().Steps) == 1 }, patience, tick)
			if !served {
				stop()
			}
			require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), started.ID, "", "stuck"))
			require.NoError(t, w.ends(t))
			require.Equal(t, contract.TxTerminated, w.last().State)
			require.Contains(t, w.last().Reason, "stuck")
			require.Len(t, w.last().Steps, 1, "how far it had come is not forgotten")
		})
	}
}

func TestWatchersOfATransactionShareOnePoll(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	var watchers []*watcher
	for range 25 {
		watchers = append(watchers, watch(t.Context(), t, c, id))
	}
	for _, w := range watchers {
		w.reaches(t, contract.TxRunning)
	}
	before := n.total()["QueryWorkflow"]
	tell(t, c, id, script{State: contract.TxAwaitingResolution})
	for _, w := range watchers {
		w.reaches(t, contract.TxAwaitingResolution)
	}
	require.LessOrEqual(t, n.total()["QueryWorkflow"]-before, 5, "each event, and not each watcher, costs a look")
	tell(t, c, id, script{State: contract.TxCommitted})
	for _, w := range watchers {
		require.NoError(t, w.ends(t))
		require.Equal(t, contract.TxCommitted, w.last().State)
	}
	require.Equal(t, 1, n.mostPolls)
	requireNoFeeds(t, c)
}

// requireNoFeeds waits until nothing is followed any more.
func requireNoFeeds(t *testing.T, c *Client) {
	t.Helper()
	c.feeds.wg.Wait()
	c.feeds.mu.Lock()
	defer c.feeds.mu.Unlock()
	require.Empty(t, c.feeds.byID)
}

func TestLastWatcherEndsThePoll(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	ctx, cancel := context.WithCancel(t.Context())
	first, second := watch(ctx, t, c, id), watch(t.Context(), t, c, id)
	first.reaches(t, contract.TxRunning)
	second.reaches(t, contract.TxRunning)
	cancel()
	require.ErrorIs(t, first.ends(t), context.Canceled)

	stop := errors.New("seen enough")
	third := make(chan error, 1)
	go func() { third <- c.Watch(t.Context(), id, func(contract.Snapshot) error { return stop }) }()
	require.Equal(t, stop, <-third)

	tell(t, c, id, script{State: contract.TxAwaitingResolution})
	second.reaches(t, contract.TxAwaitingResolution)
	tell(t, c, id, script{State: contract.TxFailed})
	require.NoError(t, second.ends(t))
	requireNoFeeds(t, c)
	require.Equal(t, 1, n.mostPolls)
	require.Zero(t, n.polls)
}

func TestCloseEndsEveryWatch(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	w := watch(t.Context(), t, c, id)
	w.reaches(t, contract.TxRunning)
	c.Close()
	require.ErrorIs(t, w.ends(t), ErrClosedClient)
	require.ErrorIs(t, c.Watch(t.Context(), id, func(contract.Snapshot) error { return nil }), ErrClosedClient)
}

func TestWatchWaitsForAWorker(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	c.queryWait = 20 * tick
	r := ask(t, "")
	id := mustStart(t, c, r).ID
	w := watch(t.Context(), t, c, id)
	w.reaches(t, contract.TxRunning)
	require.Empty(t, w.last().Steps)
	require.Contains(t, w.last().Waiting, "a worker")
	host(t, c, r.TaskQueue)
	require.Eventually(t, func() bool { return len(w.last().Steps) == 1 }, patience, tick)
	tell(t, c, id, script{State: contract.TxCommitted})
	require.NoError(t, w.ends(t))
}

func TestWatchOutlastsErrorsOfTheConnection(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	var mu sync.Mutex
	failures := 0
	spoil := func(method string, _ any) error {
		switch method {
		case "GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse", "DescribeWorkflowExecution", "QueryWorkflow":
			mu.Lock()
			defer mu.Unlock()
			if failures++; failures%3 != 0 {
				return unavailable
			}
		}
		return nil
	}
	n.spoil.Store(&spoil)
	w := watch(t.Context(), t, c, id)
	w.reaches(t, contract.TxRunning)
	tell(t, c, id, script{State: contract.TxAwaitingResolution})
	w.reaches(t, contract.TxAwaitingResolution)
	tell(t, c, id, script{State: contract.TxCommitted})
	require.NoError(t, w.ends(t))
	require.Equal(t, contract.TxCommitted, w.last().State)
}

func TestWaitReturnsWhereAHumanIsNeededAndAtTheEnd(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	host(t, c, r.TaskQueue)
	id := mustStart(t, c, r).ID
	for _, state := range []contract.TxState{contract.TxAwaitingCompensationApproval, contract.TxCompensated} {
		tell(t, c, id, script{State: contract.TxCompensating})
		requireState(t, c, id, contract.TxCompensating)
		waited := make(chan contract.Snapshot, 1)
		go func() {
			snapshot, err := c.Wait(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			waited <- snapshot
		}()
		tell(t, c, id, script{State: state})
		require.Equal(t, state, (<-waited).State)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := c.Wait(ctx, id)
	if err != nil { // it may have been quicker
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

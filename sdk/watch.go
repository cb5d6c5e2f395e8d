package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcpx-go/mcpx/contract"
)

const (
	// pollTimeout is longer than any server lets a poll for new events wait.
	pollTimeout = 90 * time.Second
	// pollPage is how many events one answer brings at most.
	pollPage = 200
	// maxRetry is the longest pause before something that failed is tried again.
	maxRetry = 5 * time.Second
)

// ErrClosedClient says that the client was closed while it was watching.
var ErrClosedClient = errors.New("the client was closed")

// Watch calls fn with the transaction as it stands, and again whenever that has changed, until the transaction is
// closed, fn returns an error, or ctx ends; it returns nil, that error, or the context's. The last snapshot is that of
// the closed transaction. Where changes come faster than fn returns, it sees the newest.
//
// It follows a transaction that continues as a new run, or that is reset. All watchers of a transaction share one poll
// and one look for each change, so they get the same snapshot: fn must not modify it. Errors of the connection are
// waited out.
func (c *Client) Watch(ctx context.Context, id string, fn func(contract.Snapshot) error) error {
	f, err := c.feeds.join(c, id)
	if err != nil {
		return err
	}
	defer c.feeds.leave(f)
	seen := 0
	for {
		now := f.now()
		switch {
		case now.version > seen:
			seen = now.version
			if err := fn(now.snapshot); err != nil {
				return err
			}
			continue
		case now.ended:
			return c.explain(id, now.err)
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errEnough ends a Watch that has seen what it wanted.
var errEnough = errors.New("enough")

// Wait waits until the transaction goes on by itself no more: it is closed, or waits for a human. It returns the
// snapshot that says so.
func (c *Client) Wait(ctx context.Context, id string) (contract.Snapshot, error) {
	var last contract.Snapshot
	err := c.Watch(ctx, id, func(s contract.Snapshot) error {
		if last = s; s.Settled() {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return last, err
}

// feeds holds the feeds of a client, one for each transaction that is being watched.
type feeds struct {
	mu     sync.Mutex
	byID   map[string]*feed
	closed bool
	wg     sync.WaitGroup
}

// feed follows one transaction for all who watch it.
type feed struct {
	id       string
	cancel   context.CancelFunc
	watchers int // guarded by feeds.mu

	mu    sync.Mutex
	state feedState
	shown shown
}

// feedState is what a feed has to tell.
type feedState struct {
	snapshot contract.Snapshot
	version  int // counts snapshots
	ended    bool
	err      error
	changed  chan struct{} // closed when the state is replaced
}

// shown is what makes a snapshot another one than the last.
type shown struct {
	run, reason string
	state       contract.TxState
	transitions int
	whole       bool
}

// join gives the feed of a transaction, and makes it where there is none.
func (fs *feeds) join(c *Client, id string) (*feed, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return nil, fmt.Errorf("watch %s: %w", id, ErrClosedClient)
	}
	f, ok := fs.byID[id]
	if !ok {
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{id: id, cancel: cancel, state: feedState{changed: make(chan struct{})}}
		fs.byID[id] = f
		fs.wg.Go(func() {
			err := c.feed(ctx, f)
			fs.forget(f)
			f.end(err)
		})
	}
	f.watchers++
	return f, nil
}

// leave ends a feed that nobody watches any more.
func (fs *feeds) leave(f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.watchers--; f.watchers > 0 {
		return
	}
	f.cancel()
	if fs.byID[f.id] == f {
		delete(fs.byID, f.id)
	}
}

// forget lets the next watcher have a new feed: this one has ended.
func (fs *feeds) forget(f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.cancel()
	if fs.byID[f.id] == f {
		delete(fs.byID, f.id)
	}
}

// close ends every feed, and returns when they have.
func (fs *feeds) close() {
	fs.mu.Lock()
	fs.closed = true
	for _, f := range fs.byID {
		f.cancel()
	}
	fs.mu.Unlock()
	fs.wg.Wait()
}

func (f *feed) now() feedState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *feed) replace(change func(*feedState)) {
	changed := f.state.changed
	f.state.changed = make(chan struct{})
	change(&f.state)
	close(changed)
}

// publish shows a snapshot to the watchers, unless they have seen it. What was known once is not forgotten: one that is
// not whole does not follow one that is, and where a transaction was ended from outside it only tells so.
func (f *feed) publish(s contract.Snapshot, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !whole && f.shown.whole {
		if !s.State.Closed() {
			return
		}
		end := s
		s = f.state.snapshot
		s.State, s.Reason, s.Waiting, s.Ended, s.Notes = end.State, end.Reason, end.Waiting, end.Ended, end.Notes
	}
	next := shown{run: s.Run, reason: s.Reason, state: s.State, transitions: s.Transitions, whole: whole}
	if next == f.shown {
		return
	}
	f.shown = next
	f.replace(func(state *feedState) { state.snapshot, state.version = s, state.version+1 })
}

func (f *feed) end(err error) {
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("watch %s: %w", f.id, ErrClosedClient)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(func(state *feedState) { state.ended, state.err = true, err })
}

// feed follows a transaction from run to run until it is closed.
func (c *Client) feed(ctx context.Context, f *feed) error {
	var run, first string
	err := persist(ctx, func() error {
		described, err := c.describe(ctx, f.id, "")
		if err != nil {
			return err
		}
		run = described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		first, err = c.firstRun(ctx, f.id, run)
		return err
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.id, err)
	}
	for {
		var end closing
		err := persist(ctx, func() (err error) {
			end, err = c.closing(ctx, f.id, run)
			return err
		})
		if err == nil && end.ending == open {
			end, err = c.attend(ctx, f, run)
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", f.id, err)
		}
		next := end.next
		if next == "" {
			if next, err = c.resetOf(ctx, f.id, run, first); err != nil {
				return fmt.Errorf("watch %s: %w", f.id, err)
			}
		}
		if next != "" {
			run = next
			continue
		}
		return persist(ctx, func() error {
			snapshot, whole, err := c.snapshot(ctx, f.id, run, c.queryWait)
			if err == nil {
				f.publish(snapshot, whole)
			}
			return err
		})
	}
}

// firstRun is the first run of the chain that a run belongs to.
func (c *Client) firstRun(ctx context.Context, id, run string) (string, error) {
	event, err := c.firstEvent(ctx, id, run)
	if err != nil {
		return "", err
	}
	r := record{id: id}
	if err := r.started(event); err != nil {
		return "", err
	}
	return r.first, nil
}

// resetOf is the run that a Temporal reset made out of a closed one: the newest run, if it is of the same chain. Other
// runs of the same ID are other transactions.
func (c *Client) resetOf(ctx context.Context, id, run, first string) (next string, err error) {
	err = persist(ctx, func() error {
		next = ""
		described, err := c.describe(ctx, id, "")
		if err != nil {
			return err
		}
		newest := described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		if newest == run {
			return nil
		}
		chain, err := c.firstRun(ctx, id, newest)
		if err == nil && chain == first {
			next = newest
		}
		return err
	})
	return next, err
}

// attend follows one run until it is closed, and says how. Every new event makes it look at the transaction.
func (c *Client) attend(ctx context.Context, f *feed, run string) (end closing, err error) {
	ctx, cancel := context.WithCancel(ctx)
	wake := make(chan struct{}, 1)
	var looking sync.WaitGroup
	looking.Go(func() { c.look(ctx, f, run, wake) })
	defer looking.Wait()
	defer cancel()

	var token []byte
	for {
		var events []*historypb.HistoryEvent
		err := persist(ctx, func() (err error) {
			events, token, err = c.poll(ctx, f.id, run, token)
			if _, stale := errors.AsType[*serviceerror.InvalidArgument](err); stale && len(token) > 0 {
				token = nil // the server does not know the place any more: from the beginning
				events, token, err = c.poll(ctx, f.id, run, nil)
			}
			return err
		})
		if err != nil {
			return end, err
		}
		if len(events) > 0 {
			if end = closed(events[len(events)-1]); end.ending != open {
				return end, nil
			}
			select {
			case wake <- struct{}{}:
			default: // it is going to look
			}
		}
		if len(token) == 0 { // the run is closed, and its last event is a page back
			err := persist(ctx, func() (err error) {
				end, err = c.closing(ctx, f.id, run)
				return err
			})
			if err != nil || end.ending != open {
				return end, err
			}
		}
	}
}

// poll waits for the events after a place in a run's history.
func (c *Client) poll(ctx context.Context, id, run string, token []byte) ([]*historypb.HistoryEvent, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	page, err := c.service().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.namespace, Execution: execution(id, run), MaximumPageSize: pollPage,
		WaitNewEvent: true, HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
		NextPageToken: token, SkipArchival: true,
	})
	if err != nil {
		return nil, token, err
	}
	events, err := eventsOf(page)
	return events, page.GetNextPageToken(), err
}

// look asks for the snapshot whenever it is woken, and publishes it. Where no worker answers, it shows what Temporal
// knows, and asks again later: that a worker has come back is no event.
func (c *Client) look(ctx context.Context, f *feed, run string, wake <-chan struct{}) {
	pause := firstPause
	retry := time.NewTimer(maxRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-retry.C:
		}
		snapshot, err := c.query(ctx, f.id, run, c.queryWait)
		if err == nil {
			f.publish(snapshot, true)
			retry.Stop()
			pause = firstPause
			continue
		}
		if snapshot, whole, err := c.fromHistory(ctx, f.id, run, err); err == nil {
			f.publish(snapshot, whole)
		}
		retry.Reset(pause)
		pause = min(2*pause, maxRetry)
	}
}

// persist does something until it succeeds, its error is one that will not pass, or ctx ends.
func persist(ctx context.Context, do func() error) error {
	pause := firstPause
	for {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !mayPass(err):
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxRetry)
	}
}

// mayPass tells whether an error may be over some time: those of the connection and of a server in trouble.
func mayPass(err error) bool {
	switch code(err) {
	case codes.Internal, codes.Canceled:
		return true
	case codes.Unknown:
		_, answered := errors.AsType[interface {
			error
			GRPCStatus() *status.Status
		}](err)
		return answered
	default:
		return isPassing(err)
	}
}

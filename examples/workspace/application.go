package workspace

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"
)

// application is one running application.
type application struct {
	App
	store  *store
	faults faults
	log    *slog.Logger

	running context.Context // ends when the application stops
	late    sync.WaitGroup  // commits that outlive their request

	mu    sync.Mutex // orders arrivals, commits and resets
	epoch *epoch
}

// epoch is the time between two resets. A call belongs to the epoch in which it
// arrives; it commits in that epoch or not at all.
type epoch struct {
	context.Context // ends at the next reset, or when the application stops
	end             context.CancelFunc
}

func newEpoch(running context.Context) *epoch {
	ctx, end := context.WithCancel(running)
	return &epoch{Context: ctx, end: end}
}

func newApplication(running context.Context, app App, store *store, log *slog.Logger) *application {
	return &application{App: app, store: store, log: log, running: running, epoch: newEpoch(running)}
}

// arrive counts a call of the tool and uses up its next fault, if one is armed.
func (a *application) arrive(ctx context.Context, tool string) (ep *epoch, fault Fault, armed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.store.count(ctx, tool); err != nil {
		return nil, Fault{}, false, err
	}
	fault, armed = a.faults.take(tool)
	return a.epoch, fault, armed, nil
}

// commit runs fn unless the epoch was ended by a reset, and reports whether it
// did.
func (a *application) commit(ep *epoch, fn func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.epoch != ep {
		return false
	}
	fn()
	return true
}

// commitAfter waits for the delay before it commits. It gives up, and returns
// false, when the epoch ends first, by a reset or a stop.
func (a *application) commitAfter(ep *epoch, delay time.Duration, fn func()) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ep.Done():
		return false
	case <-timer.C:
		return a.commit(ep, fn)
	}
}

// reset forgets every resource, counter and fault, and abandons the calls that
// have arrived and not committed.
func (a *application) reset(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch.end()
	a.epoch = newEpoch(a.running)
	a.faults.clear()
	return a.store.clear(ctx)
}

// crash ends the process at once, as a power cut would: no deferred call, no
// flush, no answer.
func (a *application) crash() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		if self.Kill() == nil {
			select {} // the signal is on its way
		}
	}
	os.Exit(137)
}

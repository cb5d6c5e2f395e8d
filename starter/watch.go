package starter

import (
	"context"
	"errors"
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// tick is how often a live part is drawn anew without news, for the time that it shows.
const tick = time.Second

// silent is how long nothing has to happen before it is asked whether a worker is missing.
const silent = 5 * time.Second

// missingWorker says which worker is waited for, where nobody polls a queue on which something of the transaction waits.
// It is only a hint: where it cannot be known it is "".
func missingWorker(ctx context.Context, c *sdk.Client, id string) string {
	ctx, cancel := context.WithTimeout(ctx, silent)
	defer cancel()
	pending, err := c.Pending(ctx, id)
	if err != nil {
		return ""
	}
	for _, queue := range pending.Missing() {
		return screen.Clean(queue.Why()) + ": start one with mcpx worker"
	}
	return ""
}

// errSettled ends a watch whose transaction goes on by itself no more.
var errSettled = errors.New("settled")

// follow shows how a transaction goes on until it is closed or waits for a human, and returns it as it stands then. On a
// terminal it draws a live table, elsewhere it writes a line for every change; with --json and programs it writes every
// snapshot, one a line. What a known snapshot holds is not told again.
func (a *App) follow(ctx context.Context, c *sdk.Client, id string, to *screen.Screen, programs bool, known contract.Snapshot) (contract.Snapshot, error) {
	news := make(chan contract.Snapshot)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, id, func(tx contract.Snapshot) error {
			select {
			case news <- tx:
			case <-ctx.Done():
				return ctx.Err()
			}
			if tx.Settled() {
				return errSettled
			}
			return nil
		})
	}()

	show, done := a.shower(to, programs, known)
	defer done()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var last contract.Snapshot
	silence := time.NewTimer(silent)
	defer silence.Stop()
	for {
		select {
		case <-silence.C:
			missing := missingWorker(ctx, c, id)
			switch {
			case missing == "" || a.JSON || a.Quiet:
			case to.Terminal():
				last.Waiting = missing
			default:
				a.say("waiting: %s", missing)
			}
		case last = <-news:
			silence.Reset(silent)
			if err := show(last, true); err != nil {
				return last, err
			}
		case <-ticker.C:
			if last.ID != "" {
				if err := show(last, false); err != nil {
					return last, err
				}
			}
		case err := <-ended:
			switch {
			case err == nil, errors.Is(err, errSettled):
				return last, nil
			case ctx.Err() != nil:
				return last, interruptedf(ctx, "the transaction goes on. Look at it with mcpx status %s --watch", screen.Shell(id))
			}
			return last, err
		}
	}
}

// shower shows snapshots, news or the same again; done ends it.
func (a *App) shower(to *screen.Screen, programs bool, known contract.Snapshot) (show func(tx contract.Snapshot, news bool) error, done func()) {
	switch {
	case a.JSON && programs:
		return func(tx contract.Snapshot, news bool) error {
			if !news {
				return nil
			}
			return a.line(tx)
		}, func() {}
	case a.Quiet || a.JSON:
		return func(contract.Snapshot, bool) error { return nil }, func() {}
	case to.Terminal():
		live := to.Live()
		return func(tx contract.Snapshot, _ bool) error {
			live.Draw(view.Live(to, tx, view.Detail{Now: time.Now()}))
			return nil
		}, live.Clear
	}
	var changes view.Changes
	changes.Known(known)
	return func(tx contract.Snapshot, news bool) error {
		if news {
			for _, line := range changes.Lines(to, tx, time.Now()) {
				to.Print(line)
			}
		}
		return nil
	}, func() {}
}

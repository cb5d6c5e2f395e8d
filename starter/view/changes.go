package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// Changes tells what has changed from one snapshot of a transaction to the next. The zero value has seen none.
type Changes struct {
	state  contract.TxState
	reason string
	steps  map[string]stepSeen
}

type stepSeen struct {
	state  contract.StepState
	reason string
	// called is when its last call was made.
	called time.Time
}

func seen(step contract.StepSnapshot) stepSeen {
	now := stepSeen{state: step.State, reason: step.Reason}
	if n := len(step.Evidence); n > 0 {
		now.called = step.Evidence[n-1].At
	}
	return now
}

// Known notes what a snapshot holds without telling it: the reader has seen it.
func (c *Changes) Known(tx contract.Snapshot) {
	c.state, c.reason, c.steps = tx.State, tx.Reason, map[string]stepSeen{}
	for _, step := range tx.Steps {
		c.steps[step.ID] = seen(step)
	}
}

// Lines are the changes since the last snapshot, one a line, in the order in which they came about. Each has the time of
// what it tells: that of the change of state, of the call that gave a new reason, else now.
func (c *Changes) Lines(s *screen.Screen, tx contract.Snapshot, now time.Time) []string {
	type change struct {
		at   time.Time
		line string
	}
	var changes []change
	add := func(at time.Time, what, state, why string) {
		if at.IsZero() {
			at = now
		}
		line := fmt.Sprintf("%s  %s  %s", s.Paint(screen.Faint, Clock(at)), screen.Clean(what), state)
		if why != "" {
			line += "  " + screen.Clean(why)
		}
		changes = append(changes, change{at, line})
	}
	width := 0
	for _, step := range tx.Steps {
		width = max(width, screen.Cells(screen.Clean(step.ID)))
	}
	for _, step := range tx.Steps {
		is := seen(step)
		was, known := c.steps[step.ID]
		if is.state == was.state && is.reason == was.reason || !known && step.State == contract.StepPending {
			continue
		}
		at := step.Since
		if known && is.state == was.state {
			at = time.Time{}
			if is.called.After(was.called) {
				at = is.called
			}
		}
		pad := strings.Repeat(" ", max(0, width-screen.Cells(screen.Clean(step.ID))))
		add(at, step.ID+pad, StepState(s, step.State), why(step))
	}
	if tx.State != c.state || tx.Reason != c.reason {
		text := tx.Reason
		if text == "" {
			text = tx.State.Meaning()
		}
		add(entered(tx), ShortID(tx.ID), State(s, tx.State), text)
	}
	c.Known(tx)
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	lines := make([]string, len(changes))
	for i, change := range changes {
		lines[i] = change.line
	}
	return lines
}

// entered is when a transaction got into its state, as far as the snapshot tells: when it ended, else when the last of
// what led there happened.
func entered(tx contract.Snapshot) time.Time {
	if !tx.Ended.IsZero() {
		return tx.Ended
	}
	last := tx.Started
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, step := range tx.Steps {
		later(step.Since)
	}
	for _, decision := range tx.Decisions {
		later(decision.At)
	}
	if tx.Undo != nil {
		later(tx.Undo.Published)
	}
	return last
}

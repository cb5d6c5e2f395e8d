package view

import (
	"fmt"
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
}

// Lines are the changes since the last snapshot, one a line: of steps first, then of the transaction.
func (c *Changes) Lines(s *screen.Screen, tx contract.Snapshot) (lines []string) {
	if c.steps == nil {
		c.steps = map[string]stepSeen{}
	}
	add := func(at time.Time, what, state, why string) {
		if at.IsZero() {
			at = time.Now()
		}
		line := fmt.Sprintf("%s  %s  %s", s.Paint(screen.Faint, Clock(at)), screen.Clean(what), state)
		if why != "" {
			line += "  " + screen.Clean(why)
		}
		lines = append(lines, line)
	}
	width := 0
	for _, step := range tx.Steps {
		width = max(width, screen.Cells(screen.Clean(step.ID)))
	}
	for _, step := range tx.Steps {
		now := stepSeen{step.State, step.Reason}
		before, known := c.steps[step.ID]
		c.steps[step.ID] = now
		if now == before || !known && step.State == contract.StepPending {
			continue
		}
		pad := strings.Repeat(" ", max(0, width-screen.Cells(screen.Clean(step.ID))))
		add(step.Since, step.ID+pad, StepState(s, step.State), why(step))
	}
	if tx.State != c.state || tx.Reason != c.reason {
		at := tx.Ended
		text := tx.Reason
		if text == "" {
			text = tx.State.Meaning()
		}
		add(at, ShortID(tx.ID), State(s, tx.State), text)
		c.state, c.reason = tx.State, tx.Reason
	}
	return lines
}

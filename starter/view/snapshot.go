package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// Detail says how much of a transaction to show.
type Detail struct {
	// Now ends the time that a transaction which is not closed has taken.
	Now time.Time
	// Evidence also shows arguments, results, every call that was made, and what humans decided.
	Evidence bool
}

// Snapshot shows one transaction as it stands: its state and why, its steps, what a human is asked, and what to type.
func Snapshot(s *screen.Screen, tx contract.Snapshot, detail Detail) string {
	var b strings.Builder
	b.WriteString(Headline(s, tx))
	end := tx.Ended
	if end.IsZero() {
		end = detail.Now
	}
	started := ""
	if !tx.Started.IsZero() {
		started = fmt.Sprintf("%s (%s)", moment(tx.Started), span(end.Sub(tx.Started)))
	}
	waiting := tx.Waiting
	if tx.State.NeedsHuman() {
		waiting = "" // see Next
	}
	facts(&b, s, [2]string{"waits for", waiting},
		[2]string{"plan", tx.Plan}, [2]string{"run", tx.Run}, [2]string{"requester", tx.Requester},
		[2]string{"started", started}, [2]string{"ended", moment(tx.Ended)}, [2]string{"input", compact(tx.Input)},
	)
	if len(tx.Steps) > 0 {
		fmt.Fprintf(&b, "\n%s\n", Steps(s, tx))
	}
	if tx.Undo != nil && (!tx.State.Closed() || detail.Evidence) {
		b.WriteString(Undo(s, *tx.Undo))
	}
	if detail.Evidence {
		data(&b, s, tx)
		evidence(&b, s, tx)
	}
	decisions(&b, s, tx, detail.Evidence)
	if len(tx.Notes) > 0 {
		section(&b, s, "Notes")
		for _, note := range tx.Notes {
			fmt.Fprintf(&b, "- %s\n", s.Wrap(screen.Clean(note), 2))
		}
	}
	b.WriteString(Next(s, tx))
	return b.String()
}

// Headline is a transaction in one line or two: which, its state, and why it is in it.
func Headline(s *screen.Screen, tx contract.Snapshot) string {
	line := fmt.Sprintf("%s  %s\n", s.Paint(screen.Bold, screen.Clean(tx.ID)), State(s, tx.State))
	why := tx.Reason
	if why == "" {
		why = tx.State.Meaning()
	}
	if why != "" {
		line += "  " + s.Wrap(screen.Clean(why), 2) + "\n"
	}
	return line
}

// Live is what changes while a transaction goes on.
func Live(s *screen.Screen, tx contract.Snapshot, detail Detail) string {
	took := ""
	if !tx.Started.IsZero() {
		took = s.Paint(screen.Faint, span(detail.Now.Sub(tx.Started)))
	}
	tx.ID = ShortID(tx.ID)
	head := strings.TrimSuffix(Headline(s, tx), "\n")
	first, rest, _ := strings.Cut(head, "\n")
	if tx.Waiting != "" && !tx.State.NeedsHuman() {
		rest += "\n" + s.Paint(screen.Wait, "waits for "+screen.Clean(tx.Waiting))
	}
	return fmt.Sprintf("%s  %s\n%s\n\n%s\n", first, took, rest, Steps(s, tx))
}

// Steps is the table of a transaction's steps.
func Steps(s *screen.Screen, tx contract.Snapshot) string {
	columns := []screen.Column{{Title: "STEP"}, {Title: "STATE"}, {Title: "CALLS"}, {Title: "TOOL"}, {Title: "WHY", Wrap: true}}
	rows := make([][]screen.Cell, len(tx.Steps))
	for i, step := range tx.Steps {
		rows[i] = []screen.Cell{
			screen.Text(step.ID), stepCell(step.State), screen.Text(calls(step)),
			{Text: step.Tool, Tone: screen.Faint}, screen.Text(why(step)),
		}
	}
	return s.Table(columns, rows)
}

// calls is how often a step's tool was called, and its compensator.
func calls(step contract.StepSnapshot) string {
	text := strconv.Itoa(step.Attempts)
	if step.Undos > 0 {
		text += "+" + strconv.Itoa(step.Undos) + " undo"
	}
	return text
}

// why is a step's reason with what else a reader has to know of it.
func why(step contract.StepSnapshot) string {
	text := step.Reason
	if step.Unverified {
		text += " (unverified: at the owner's word)"
	}
	if step.State == contract.StepRecovered && step.Proof != "" && !strings.Contains(text, string(step.Proof)) {
		text += fmt.Sprintf(" (ours by %s)", step.Proof)
	}
	if text == "" && step.State == contract.StepPending && len(step.Needs) > 0 {
		text = "waits for " + strings.Join(step.Needs, ", ")
	}
	return strings.TrimSpace(text)
}

func data(b *strings.Builder, s *screen.Screen, tx contract.Snapshot) {
	columns := []screen.Column{{Title: "STEP"}, {Title: ""}, {Title: "VALUE", Wrap: true}}
	var rows [][]screen.Cell
	for _, step := range tx.Steps {
		for _, kept := range []struct {
			what  string
			value *contract.Kept
		}{{"arguments", step.Args}, {"result", step.Result}} {
			if kept.value != nil {
				rows = append(rows, []screen.Cell{screen.Text(step.ID), {Text: kept.what, Tone: screen.Faint}, screen.Text(keptText(kept.value))})
			}
		}
	}
	if len(rows) > 0 {
		section(b, s, "Arguments and results")
		b.WriteString(s.Table(columns, rows) + "\n")
	}
}

func evidence(b *strings.Builder, s *screen.Screen, tx contract.Snapshot) {
	columns := []screen.Column{{Title: "TIME"}, {Title: "STEP"}, {Title: "CALL"}, {Title: "SAID"}, {Title: "WHAT", Wrap: true}}
	type call struct {
		step string
		contract.Evidence
	}
	var all []call
	for _, step := range tx.Steps {
		for _, e := range step.Evidence {
			all = append(all, call{step.ID, e})
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b call) int { return a.At.Compare(b.At) })
	rows := make([][]screen.Cell, len(all))
	for i, e := range all {
		rows[i] = []screen.Cell{
			{Text: Clock(e.At), Tone: screen.Faint}, screen.Text(e.step), screen.Text(callName(e.Evidence)), saidCell(e.Said),
			screen.Text(what(e.Evidence)),
		}
	}
	section(b, s, "Evidence")
	b.WriteString(s.Table(columns, rows) + "\n")
}

func callName(e contract.Evidence) string {
	text := string(e.Call)
	if e.Attempt > 0 {
		text += " " + strconv.Itoa(e.Attempt)
	}
	if e.Late {
		text += " (late)"
	}
	return text
}

// what says what was called, why the call said what it did, and how it went.
func what(e contract.Evidence) string {
	text := e.Tool
	for _, more := range []string{e.Why, e.Answer} {
		if more != "" && !strings.Contains(text, more) {
			text += ": " + more
		}
	}
	var how []string
	if e.Written != "" && e.Written != contract.Answered {
		how = append(how, "written: "+string(e.Written))
	}
	if e.Took > 0 {
		how = append(how, span(e.Took.Std()))
	}
	if e.By != "" {
		how = append(how, "by "+e.By)
	}
	if len(how) > 0 {
		text += " (" + strings.Join(how, ", ") + ")"
	}
	return text
}

// decisions shows what humans decided; without the whole story, only what counted for nothing, lest somebody waits for
// its effect.
func decisions(b *strings.Builder, s *screen.Screen, tx contract.Snapshot, all bool) {
	columns := []screen.Column{{Title: "TIME"}, {Title: "DECISION"}, {Title: "BY"}, {Title: "COUNTED"}, {Title: "WHY", Wrap: true}}
	var rows [][]screen.Cell
	for _, d := range tx.Decisions {
		counted := screen.Cell{Text: "yes", Tone: screen.Good}
		if !d.Accepted {
			counted = screen.Cell{Text: "no", Tone: screen.Bad}
		} else if !all {
			continue
		}
		name := d.Signal
		if d.Decision.Step != "" {
			name += fmt.Sprintf(" %s %s", d.Decision.Step, d.Decision.As)
		}
		text := d.Why
		if d.Decision.Reason != "" {
			text += fmt.Sprintf(" (%s)", d.Decision.Reason)
		}
		rows = append(rows, []screen.Cell{{Text: Clock(d.At), Tone: screen.Faint}, screen.Text(name), screen.Text(d.Decision.By), counted, screen.Text(text)})
	}
	if len(rows) == 0 {
		return
	}
	title := "Decisions"
	if !all {
		title = "Decisions that did not count"
	}
	section(b, s, title)
	b.WriteString(s.Table(columns, rows) + "\n")
}

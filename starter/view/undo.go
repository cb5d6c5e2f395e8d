package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// Undo shows an undo plan: exactly what an approval allows, and what stays.
func Undo(s *screen.Screen, plan contract.UndoPlan) string {
	var b strings.Builder
	title := fmt.Sprintf("Undo plan %d, digest %s", plan.Version, ShortDigest(screen.Clean(plan.Digest)))
	if !plan.Expires.IsZero() {
		title += ", expires " + moment(plan.Expires)
	}
	section(&b, s, title)
	columns := []screen.Column{{Title: "WAVE"}, {Title: "UNDOES"}, {Title: "SEEN"}, {Title: "OURS BY"}, {Title: "CALL", Wrap: true}}
	var rows [][]screen.Cell
	for i, wave := range plan.Waves {
		for _, undo := range wave {
			seen := screen.Cell{Text: string(undo.Seen), Tone: verdictTones[undo.Seen]}
			rows = append(rows, []screen.Cell{
				screen.Text(strconv.Itoa(i + 1)), screen.Text(undo.Step), seen, screen.Text(string(undo.Proof)),
				screen.Text(undo.Tool + " " + compact(undo.Args)),
			})
		}
	}
	if len(rows) == 0 {
		b.WriteString("Nothing can be undone.\n")
	} else {
		b.WriteString(s.Table(columns, rows) + "\n")
	}
	for _, wave := range plan.Waves {
		for _, undo := range wave {
			if undo.Seen == contract.Inconclusive {
				line := fmt.Sprintf("%s: it will not be touched unless a look right before recognises it as ours: %s", undo.Step, undo.Why)
				fmt.Fprintf(&b, "%s %s\n", s.Paint(screen.Doubt, "Inconclusive:"), s.Wrap(screen.Clean(line), 14))
			}
		}
	}
	for _, kept := range plan.Kept {
		line := fmt.Sprintf("%s (%s): %s", kept.Step, kept.Tool, kept.Why)
		fmt.Fprintf(&b, "%s %s\n", s.Paint(screen.Bad, "Stays:"), s.Wrap(screen.Clean(line), 7))
	}
	return b.String()
}

// Next says what a human can type, where a transaction waits for one; else it is empty.
func Next(s *screen.Screen, tx contract.Snapshot) string {
	id := screen.Shell(tx.ID)
	var options [][2]string
	switch tx.State {
	case contract.TxAwaitingStartApproval:
		options = [][2]string{
			{"mcpx approve " + id, "let it start"},
			{"mcpx reject " + id, "decline it: nothing happens"},
		}
	case contract.TxAwaitingCompensationApproval:
		digest := ""
		if tx.Undo != nil {
			digest = " --digest " + screen.Shell(ShortDigest(tx.Undo.Digest))
		}
		options = [][2]string{
			{"mcpx approve " + id + digest, "undo exactly this"},
			{"mcpx reject " + id, "decline the rollback: the effects stay"},
		}
		if canResume(tx) {
			options = append(options, [2]string{"mcpx resume " + id, "try the failed steps again, and go on"})
		}
	case contract.TxAwaitingResolution:
		for _, step := range tx.Steps {
			options = append(options, resolutions(id, step)...)
		}
		if slices.ContainsFunc(tx.Steps, func(s contract.StepSnapshot) bool { return s.State == contract.StepUnknown }) {
			options = append(options, [2]string{"mcpx abort " + id, "stop, and ask about the rollback"})
		}
	default:
		return ""
	}
	var b strings.Builder
	waiting := "a human"
	if tx.Waiting != "" {
		waiting = tx.Waiting
	}
	section(&b, s, "Waiting for "+screen.Clean(waiting))
	// Commands are to be copied: they are never wrapped, whatever the width.
	width := 0
	for _, option := range options {
		width = max(width, screen.Cells(option[0]))
	}
	for _, option := range options {
		pad := strings.Repeat(" ", width-screen.Cells(option[0]))
		fmt.Fprintf(&b, "  %s%s  %s\n", s.Paint(screen.Mark, option[0]), pad, option[1])
	}
	return b.String()
}

// canResume: forward recovery tries failed and skipped steps again.
func canResume(tx contract.Snapshot) bool {
	for _, step := range tx.Steps {
		if step.State == contract.StepFailed || step.State == contract.StepSkipped {
			return true
		}
	}
	return false
}

// resolutions are the answers that fit a step which waits for one.
func resolutions(id string, step contract.StepSnapshot) [][2]string {
	answer := func(as contract.Resolution, more, meaning string) [2]string {
		return [2]string{fmt.Sprintf("mcpx resolve %s %s --as %s%s --reason WHY", id, screen.Shell(step.ID), as, more), meaning}
	}
	switch {
	case step.State == contract.StepUnknown:
		return [][2]string{
			answer(contract.ResolveInspect, "", "ask the owner again"),
			answer(contract.ResolveCommitted, " --result JSON", "you know that it is in effect"),
			answer(contract.ResolveAbsent, "", "you know that it is not"),
		}
	case step.State == contract.StepCompensationFailed && !step.Accepted:
		return [][2]string{
			answer(contract.ResolveRetry, "", "try to undo it again"),
			answer(contract.ResolveAccepted, "", "accept that it stays"),
		}
	}
	return nil
}

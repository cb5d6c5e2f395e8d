package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// Plan shows a dry run: the steps in their waves, the contracts that protect them, the rollback of the worst case, what
// the owners say where they were asked, and what the lint found.
func Plan(s *screen.Screen, d DryRun) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", s.Paint(screen.Bold, screen.Clean(d.Plan)), s.Paint(screen.Faint, "digest "+ShortDigest(screen.Clean(d.Digest))))
	facts(&b, s,
		[2]string{"about", d.Description}, [2]string{"input", compact(d.Input)},
		[2]string{"approval", approval(d.Approval)}, [2]string{"repeated", repeated(d.TTL)},
	)

	section(&b, s, "Steps")
	b.WriteString(waves(s, d.Waves, "STEP") + "\n")
	section(&b, s, "Contracts")
	b.WriteString(contracts(s, d) + "\n")
	section(&b, s, "Undo, if everything had to be undone")
	if len(d.Undo) == 0 {
		b.WriteString("Nothing could be undone.\n")
	} else {
		b.WriteString(waves(s, d.Undo, "UNDOES") + "\n")
	}
	for _, kept := range d.Stays {
		line := fmt.Sprintf("%s (%s): %s", kept.Step, kept.Tool, kept.Why)
		fmt.Fprintf(&b, "%s %s\n", s.Paint(screen.Bad, "Stays:"), s.Wrap(screen.Clean(line), 7))
	}
	if len(d.Inspected) > 0 {
		section(&b, s, "What is there now")
		b.WriteString(inspected(s, d.Inspected) + "\n")
	}
	section(&b, s, "Lint")
	if len(d.Warnings) == 0 {
		b.WriteString(s.Paint(screen.Good, "Nothing to say.") + "\n")
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "%s %s\n", s.Paint(screen.Doubt, "!"), s.Wrap(screen.Clean(warning), 2))
	}
	return b.String()
}

func approval(a contract.Approval) string {
	start := "starts by itself"
	if a.Start == contract.ApprovalRequired {
		start = "a human must approve the start"
	}
	who := "one person"
	if a.Quorum > 1 {
		who = fmt.Sprintf("%d people", a.Quorum)
	}
	if a.FourEyes {
		who += " other than the requester"
	}
	text := fmt.Sprintf("%s; a rollback must be approved by %s", start, who)
	if a.Expires > 0 {
		text += fmt.Sprintf(", each question stands for %s", term(a.Expires))
	}
	return text
}

func repeated(ttl contract.Duration) string {
	if ttl <= 0 {
		return ""
	}
	return fmt.Sprintf("the same intent is answered with the same outcome for %s", term(ttl))
}

func waves(s *screen.Screen, waves [][]PlannedCall, title string) string {
	columns := []screen.Column{{Title: "WAVE"}, {Title: title}, {Title: "CALL"}, {Title: "ARGUMENTS", Wrap: true}}
	var rows [][]screen.Cell
	for i, wave := range waves {
		for _, call := range wave {
			rows = append(rows, []screen.Cell{
				screen.Text(strconv.Itoa(i + 1)), screen.Text(call.Step), screen.Text(call.Tool), screen.Text(compact(call.Args)),
			})
		}
	}
	return s.Table(columns, rows)
}

// contracts is the table of the contracts behind the steps. What is missing stands out.
func contracts(s *screen.Screen, d DryRun) string {
	columns := []screen.Column{
		{Title: "STEP"}, {Title: "RISK"}, {Title: "INSPECT"}, {Title: "OURS BY"}, {Title: "COMPENSATE"},
		{Title: "RETRIES"}, {Title: "SETTLE"},
	}
	var rows [][]screen.Cell
	for _, wave := range d.Waves {
		for _, call := range wave {
			tool := d.Contracts[call.Tool]
			missing := screen.Cell{Text: "none", Tone: screen.Bad}
			if tool.Risk == contract.RiskReadOnly {
				missing = screen.Cell{Text: "not needed", Tone: screen.Faint}
			}
			inspect, compensate, ours := missing, missing, screen.Text("")
			if tool.Inspect != nil {
				inspect, ours = screen.Text(tool.Inspect.Tool), oursBy(tool)
			}
			if tool.Compensate != nil {
				compensate = screen.Text(tool.Compensate.Tool)
				if tool.Compensate.Within > 0 {
					compensate.Text += " within " + term(tool.Compensate.Within)
				}
			}
			rows = append(rows, []screen.Cell{
				screen.Text(call.Step), screen.Text(string(tool.Risk)), inspect, ours, compensate,
				screen.Text(strconv.Itoa(tool.Retries)), screen.Text(term(tool.Settle)),
			})
		}
	}
	return s.Table(columns, rows)
}

// oursBy says what lets the inspector tell our effect from somebody else's.
func oursBy(tool contract.Tool) screen.Cell {
	var proofs []string
	for _, proof := range tool.Inspect.Proves {
		proofs = append(proofs, string(proof))
	}
	if tool.Inspect.Before {
		proofs = append(proofs, string(contract.ProofLook))
	}
	if tool.OursByKey {
		proofs = append(proofs, string(contract.ProofKey))
	}
	if len(proofs) == 0 {
		return screen.Cell{Text: "nothing", Tone: screen.Bad}
	}
	return screen.Text(strings.Join(proofs, ", "))
}

func inspected(s *screen.Screen, all []Inspected) string {
	columns := []screen.Column{{Title: "STEP"}, {Title: "ASKED"}, {Title: "SEEN"}, {Title: "WHY", Wrap: true}}
	rows := make([][]screen.Cell, len(all))
	for i, in := range all {
		asked := screen.Cell{Text: "not asked", Tone: screen.Faint}
		if in.Tool != "" {
			asked = screen.Text(strings.TrimSpace(in.Tool + " " + compact(in.Args)))
		}
		seen := screen.Cell{Text: string(in.Verdict), Tone: verdictTones[in.Verdict]}
		if in.Verdict == contract.Present {
			seen.Tone = screen.Bad // it is not ours: nothing has run yet
		}
		text := in.Why
		if len(in.Found) > 0 {
			text = strings.TrimPrefix(text+": "+compact(in.Found), ": ")
		}
		rows[i] = []screen.Cell{screen.Text(in.Step), asked, seen, screen.Text(text)}
	}
	return s.Table(columns, rows)
}

package starter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
)

// proof is one thing that the demonstration claims, and whether it is so.
type proof struct {
	Claim string `json:"claim"`
	Holds bool   `json:"holds"`
}

// appState is what one application says of itself.
type appState struct {
	Application workspace.Kind   `json:"application"`
	Resources   []string         `json:"resources"`
	Calls       map[string]int64 `json:"calls"`
}

func (d *demo) claim(holds bool, format string, args ...any) {
	d.story.Proofs = append(d.story.Proofs, proof{Claim: fmt.Sprintf(format, args...), Holds: holds})
}

// ask asks an application directly, past MCPx and MCP.
func (d *demo) ask(ctx context.Context, kind workspace.Kind) (appState, error) {
	resources, err := d.stack.Apps[kind].Resources(ctx)
	if err != nil {
		return appState{}, fmt.Errorf("ask the %s application: %w", kind, err)
	}
	calls, err := d.stack.Apps[kind].Calls(ctx)
	if err != nil {
		return appState{}, fmt.Errorf("ask the %s application: %w", kind, err)
	}
	state := appState{Application: kind, Resources: []string{}, Calls: calls}
	for _, resource := range resources {
		state.Resources = append(state.Resources, resource.ID)
	}
	return state, nil
}

// recovered looks, as soon as a lost reply was recovered, how many routes there really are.
func (d *demo) recovered(ctx context.Context, step string) error {
	if step != string(workspace.Routing) {
		return nil
	}
	state, err := d.ask(ctx, workspace.Routing)
	if err != nil {
		return err
	}
	routes, calls := len(state.Resources), state.Calls["create_route"]
	d.claim(routes == 1 && calls == 1, "the lost reply was recovered: one route existed, and create_route had been called once")
	d.told.aside(fmt.Sprintf("The application itself says: routes in existence: %d, calls of create_route: %d.", routes, calls))
	return nil
}

// prove asks the four applications at the end, and compares with what the story claims.
func (d *demo) prove(ctx context.Context, tx contract.Snapshot) error {
	d.claim(tx.State == contract.TxCompensated, "the transaction ended COMPENSATED")
	left := 0
	created, undone := called{want: 1}, called{want: 1}
	for _, kind := range d.stack.Kinds() {
		state, err := d.ask(ctx, kind)
		if err != nil {
			return err
		}
		app, err := workspace.AppOf(kind)
		if err != nil {
			return err
		}
		d.story.Apps = append(d.story.Apps, state)
		left += len(state.Resources)
		created.add(app.Create, state.Calls[app.Create])
		if kind == workspace.Frontend {
			d.claim(state.Calls[app.Delete] == 0, "%s was never called: there was nothing to undo", app.Delete)
			continue
		}
		undone.add(app.Delete, state.Calls[app.Delete])
	}
	d.claim(created.holds(), "called once each: %s", created.tools)
	d.claim(undone.holds(), "called once each: %s", undone.tools)
	d.claim(left == 0, "nothing is left in the four applications")
	proofs := d.story.Proofs
	d.story.OK = len(proofs) == proofCount && !slices.ContainsFunc(proofs, func(p proof) bool { return !p.Holds })
	return nil
}

// proofCount is how many claims the story makes. Fewer: something never happened.
const proofCount = 6

// called counts the calls of several tools.
type called struct {
	want  int64
	tools string
	wrong bool
}

func (c *called) add(tool string, calls int64) {
	if c.tools != "" {
		c.tools += ", "
	}
	c.tools += tool
	c.wrong = c.wrong || calls != c.want
}

func (c *called) holds() bool { return c.tools != "" && !c.wrong }

// conclude shows what the applications say, what holds, and how it ended.
func (d *demo) conclude(out *screen.Screen) {
	out.Print("\n" + out.Paint(screen.Bold, "What the applications themselves say"))
	columns := []screen.Column{{Title: "APPLICATION"}, {Title: "EXISTS"}, {Title: "CALLS", Wrap: true}}
	var rows [][]screen.Cell
	for _, app := range d.story.Apps {
		exists := screen.Cell{Text: "nothing", Tone: screen.Good}
		if len(app.Resources) > 0 {
			exists = screen.Cell{Text: strings.Join(app.Resources, ", "), Tone: screen.Bad}
		}
		rows = append(rows, []screen.Cell{screen.Text(string(app.Application)), exists, screen.Text(callsText(app.Calls))})
	}
	out.Print(out.Table(columns, rows) + "\n")
	for _, p := range d.story.Proofs {
		mark := out.Paint(screen.Good, "✓")
		if !p.Holds {
			mark = out.Paint(screen.Bad, "✗")
		}
		out.Printf("%s %s", mark, p.Claim)
	}
	out.Printf("\n%s: %s", view.State(out, d.story.State), d.ending())
}

func (d *demo) ending() string {
	switch {
	case d.story.OK:
		return "nothing happened twice, and nothing is left."
	case d.story.State == contract.TxRetained:
		return "you declined the rollback, so the effects stay."
	}
	return "this is not how the story goes: see what does not hold above."
}

// callsText lists how often each tool was called, those that were never called left out.
func callsText(calls map[string]int64) string {
	var parts []string
	for _, tool := range slices.Sorted(maps.Keys(calls)) {
		if n := calls[tool]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", tool, n))
		}
	}
	return strings.Join(parts, ", ")
}

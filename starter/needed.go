package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
)

// checkResult looks, before somebody says that a step is in effect, whether the result that goes with it has what others
// refer to. Without any result that is refused; a result that was given is taken as it is, and what it lacks is said.
func (a *App) checkResult(ctx context.Context, c *sdk.Client, id string, d contract.Decision) error {
	tx, err := c.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if step, ok := tx.Step(d.Step); !ok || step.State != contract.StepUnknown {
		return nil // the transaction says what is wrong with it
	}
	def, err := a.definitionOf(tx)
	if err != nil {
		if len(d.Result) == 0 {
			a.say("whether later steps need the result of %s was not checked: %v", d.Step, err)
		}
		return nil
	}
	later, undo := lacking(def, d.Step, d.Result)
	if len(later) > 0 && len(d.Result) == 0 {
		return usagef("later steps need the result of %s: %s. Say what its call answered with --result JSON; with --result '{}' they fail",
			d.Step, strings.Join(later, ", "))
	}
	if len(later) > 0 {
		a.say("the result lacks what later steps need: %s. They fail", strings.Join(later, ", "))
	}
	if len(undo) > 0 {
		a.say("the result lacks what its inspector or compensator needs: %s. The step may have to be undone by hand", strings.Join(undo, ", "))
	}
	return nil
}

// definitionOf is the plan of a transaction, as the manifest at hand has it.
func (a *App) definitionOf(tx contract.Snapshot) (contract.Definition, error) {
	m, err := a.manifest()
	if err != nil {
		return contract.Definition{}, err
	}
	plan, err := m.Plan(tx.Plan)
	if err != nil {
		return contract.Definition{}, err
	}
	if tx.Definition != "" && tx.Definition != plan.Definition.Digest {
		return contract.Definition{}, fmt.Errorf("%s has another version of plan %s", m.File, tx.Plan)
	}
	return plan.Definition, nil
}

// lacking lists the references to a step's result that lead to nothing in the given one: those of other steps, with the
// step that makes them, and those of its own contract.
func lacking(def contract.Definition, id string, result json.RawMessage) (later, own []string) {
	leads := func(path []contract.Elem) bool {
		if len(result) == 0 {
			return false
		}
		_, err := contract.Lookup(result, path)
		return err == nil
	}
	add := func(to *[]string, text string) {
		if !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	for _, step := range def.Steps {
		for _, path := range paths(step.Args) {
			if path.Root == "steps" && len(path.Elems) > 1 && path.Elems[0].Member == id && !leads(path.Elems[2:]) {
				add(&later, fmt.Sprintf("${%s} (step %s)", path, step.ID))
			}
		}
		if step.ID != id {
			continue
		}
		tool := def.Tools[step.Tool]
		var templates []contract.Template
		if tool.Inspect != nil {
			templates = append(templates, tool.Inspect.Args)
		}
		if tool.Compensate != nil {
			templates = append(templates, tool.Compensate.Args)
		}
		for _, template := range templates {
			for _, path := range paths(template) {
				if path.Root == "result" && !leads(path.Elems) {
					add(&own, fmt.Sprintf("${%s}", path))
				}
			}
		}
	}
	return later, own
}

// paths are those that a template refers to. One that cannot be read is none of a manifest that was read.
func paths(template contract.Template) (all []contract.Path) {
	if len(template) == 0 {
		return nil
	}
	refs, err := template.Refs()
	if err != nil {
		return nil
	}
	for _, ref := range refs {
		all = append(all, ref.Path)
	}
	return all
}

package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// args are the step's arguments, as they were dispatched: templates, input and results are pinned, so that filling
// them again gives the same.
func (t *transaction) args(s *step) (json.RawMessage, error) {
	return t.fill(s, s.def.Args, t.scope(s))
}

// fill fills a template for a step. Results that were too large to be kept may be referred to only where they were.
func (t *transaction) fill(s *step, template contract.Template, scope contract.Scope) (json.RawMessage, error) {
	if err := t.checkKept(s, template); err != nil {
		return nil, err
	}
	return template.Fill(scope)
}

func (t *transaction) checkKept(s *step, template contract.Template) error {
	reduced := func(of *step) bool { return of.result != nil && of.result.Reduced }
	if !reduced(s) && !slices.ContainsFunc(s.needs, reduced) {
		return nil
	}
	refs, err := template.Refs()
	if err != nil {
		return err
	}
	for _, ref := range refs {
		of, elems := s, ref.Path.Elems
		switch {
		case ref.Path.Root == "result":
		case ref.Path.Root == "steps" && len(elems) > 1:
			of, elems = t.byID[elems[0].Member], elems[2:]
		default:
			continue
		}
		if of != nil && !of.result.Holds(elems, of.def.Keep) {
			return fmt.Errorf("%s: ${%s}: the result of step %s was too large to be kept there (%d bytes): %w",
				ref.At, ref.Path, of.def.ID, of.result.Size, contract.ErrNoValue)
		}
	}
	return nil
}

// scope is what a step's templates may refer to.
func (t *transaction) scope(s *step) contract.Scope {
	info := workflow.GetInfo(t.ctx)
	return contract.Scope{
		"input": t.input(),
		"tx": encode(map[string]string{
			"id": t.tx.ID, "plan": t.resolved.Definition.Plan, "workflow": info.WorkflowExecution.ID,
		}),
		"step": encode(struct {
			ID      string `json:"id"`
			Attempt int    `json:"attempt"`
		}{s.def.ID, s.attempts}),
		"steps":  t.results(s),
		"result": s.result.Raw(),
	}
}

// results holds the results of the steps that s needs: {"database": {"result": …}}.
func (t *transaction) results(s *step) json.RawMessage {
	results := map[string]map[string]json.RawMessage{}
	for _, need := range s.needs {
		results[need.def.ID] = map[string]json.RawMessage{"result": need.result.Raw()}
	}
	return encode(results)
}

func (t *transaction) input() json.RawMessage {
	if len(t.resolved.Input) > 0 {
		return t.resolved.Input
	}
	if len(t.start.Input) > 0 {
		return t.start.Input
	}
	return json.RawMessage("{}")
}

// keep takes a result into the workflow's state: whole while there is room, else the paths that others refer to. The
// event of the call holds it whole.
func (t *transaction) keep(s *step, result *contract.Kept) *contract.Kept {
	if s.result != nil {
		t.keptBytes -= len(s.result.Value)
	}
	if result == nil {
		return nil
	}
	if t.keptBytes+len(result.Value) > keptInline {
		result = result.Slim(s.def.Keep, 0)
	}
	t.keptBytes += len(result.Value)
	return result
}

// encode writes plain data as JSON; encoding/json sorts the keys of maps, so the text is deterministic.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// publish looks at every effect, and publishes what a human is asked to allow.
func (t *transaction) publish(ctx workflow.Context) {
	t.undo = nil
	t.changed()
	looks := t.lookAtEffects(ctx)
	if t.mustLeave() {
		return
	}
	t.plans++
	plan := contract.UndoPlan{
		Version: t.plans, Run: t.tx.Run, Tx: t.tx.ID, Definition: t.resolved.Definition.Digest, Published: workflow.Now(t.ctx),
	}
	height := t.heights()
	shown := undoShown / max(1, len(t.steps))
	for _, s := range t.steps {
		if !hasEffect(s) {
			continue
		}
		undo, why := t.undoOf(s, looks[s.def.ID], shown)
		if why != "" {
			plan.Kept = append(plan.Kept, contract.Residue{Step: s.def.ID, Tool: s.def.Tool, Why: why})
			continue
		}
		for len(plan.Waves) <= height[s] {
			plan.Waves = append(plan.Waves, nil)
		}
		plan.Waves[height[s]] = append(plan.Waves[height[s]], undo)
	}
	plan.Waves = slices.DeleteFunc(plan.Waves, func(wave []contract.Undo) bool { return len(wave) == 0 })
	plan.Digest = digest(plan.Covered())
	t.ask = t.newQuestion(askCompensation)
	plan.Expires = t.ask.expires
	t.undo = &plan
	t.enter(contract.TxAwaitingCompensationApproval, t.stopping)
}

// lookAtEffects asks every owner, at the same time, what is there now.
func (t *transaction) lookAtEffects(ctx workflow.Context) map[string]contract.Look {
	looks := map[string]contract.Look{}
	var undoable []*step
	for _, s := range t.steps {
		if hasEffect(s) && t.staysAnyway(s) == "" {
			undoable = append(undoable, s)
		}
	}
	t.each(ctx, undoable, "look at effects", func(ctx workflow.Context, s *step) {
		args, err := t.args(s)
		if err != nil {
			looks[s.def.ID] = contract.Look{Verdict: contract.Inconclusive, Why: err.Error()}
			return
		}
		looks[s.def.ID] = t.inspect(ctx, s, args)
	})
	return looks
}

// staysAnyway says why an effect will not be undone, whatever a look at it shows, or "".
func (t *transaction) staysAnyway(s *step) string {
	undo := s.tool.Compensate
	switch {
	case s.state == contract.StepNotCompensable, s.accepted:
		return s.reason
	case undo == nil:
		return "its contract has no compensation"
	case s.tool.Inspect == nil:
		return "its contract has no inspector, so undoing it could not be verified"
	case t.tooOld(s):
		return fmt.Sprintf("it could be undone only within %s", undo.Within)
	}
	return ""
}

// tooOld tells whether the time within which the effect could be undone is over.
func (t *transaction) tooOld(s *step) bool {
	within := s.tool.Compensate.Within.Std()
	return within > 0 && workflow.Now(t.ctx).After(s.committed.Add(within))
}

// undoOf is the compensation of one step, or why its effect stays. Values larger than shown are represented by their
// digests.
func (t *transaction) undoOf(s *step, look contract.Look, shown int) (contract.Undo, string) {
	if why := t.staysAnyway(s); why != "" {
		return contract.Undo{}, why
	}
	if look.Verdict == contract.Present && t.ours(s) == "" {
		return contract.Undo{}, "what is there cannot be recognised as ours"
	}
	args, err := t.undoArgs(s, look)
	if err == nil {
		err = fits(args)
	}
	if err != nil {
		return contract.Undo{}, "its compensation cannot be called: " + err.Error()
	}
	undo := contract.Undo{
		Step: s.def.ID, Undoes: s.def.Tool, Tool: s.tool.Compensate.Server + "/" + s.tool.Compensate.Tool,
		Args: args, Seen: look.Verdict, Proof: s.proof,
	}
	if look.Verdict == contract.Inconclusive {
		undo.Why = cut(look.Why, maxReason)
	}
	if len(args) > shown {
		undo.Args, undo.ArgsDigest = nil, digest(args)
	}
	if effect := look.Result; effect != nil {
		undo.Effect = effect.Value
		if effect.Reduced || len(effect.Value) > shown {
			undo.Effect, undo.EffectDigest = nil, effect.Digest
		}
	}
	return undo, ""
}

// undoArgs fills the compensator's arguments. What a look found replaces the result of a step that was itself only
// found, not acknowledged.
func (t *transaction) undoArgs(s *step, look contract.Look) (json.RawMessage, error) {
	args, err := t.args(s)
	if err != nil {
		return nil, err
	}
	scope := t.scope(s)
	scope["args"] = args
	if s.proof != contract.ProofAnswer && look.Verdict == contract.Present && look.Result != nil {
		scope["result"] = look.Result.Raw()
	}
	return t.fill(s, s.tool.Compensate.Args, scope)
}

// approvedArgs tells whether arguments are those that were approved.
func approvedArgs(approved contract.Undo, args json.RawMessage) bool {
	if approved.ArgsDigest != "" {
		return approved.ArgsDigest == digest(args)
	}
	return digest(approved.Args) == digest(args)
}

// heights says for every step in which wave it is undone: after everything that depended on it.
func (t *transaction) heights() map[*step]int {
	height := map[*step]int{}
	var of func(s *step) int
	of = func(s *step) int {
		if h, ok := height[s]; ok {
			return h
		}
		h := 0
		for _, dependent := range s.needed {
			below := of(dependent)
			if hasEffect(dependent) && t.staysAnyway(dependent) == "" {
				below++
			}
			h = max(h, below)
		}
		height[s] = h
		return h
	}
	for _, s := range t.steps {
		of(s)
	}
	return height
}

// digest of data whose JSON has a canonical form. Text from owners may have none (half a surrogate pair): then the
// digest is over the JSON as it is encoded.
func digest(v any) string {
	d, err := canon.DigestValue(v)
	if err != nil {
		return contract.Keep(encode(v), nil, 0).Digest
	}
	return d
}

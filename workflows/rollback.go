package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// rollback takes a stopped transaction to its end: nothing is in effect (FAILED), a human declined (RETAINED), or the
// approved undo plan was carried out (COMPENSATED, PARTIALLY_COMPENSATED). again: forward recovery was chosen.
func (t *transaction) rollback(ctx workflow.Context) (state contract.TxState, again bool) {
	for !t.mustLeave() {
		if !t.approved {
			if !slices.ContainsFunc(t.steps, hasEffect) {
				t.reason = t.stopping
				return contract.TxFailed, false
			}
			t.publish(ctx)
			if t.mustLeave() {
				return "", false
			}
			switch t.question(ctx, t.compensationQuestion(), t.resolved.Definition.Approval.Expires.Std()) {
			case answerApproved:
				t.approved = true
			case answerRejected:
				t.reason = "the rollback was declined: the effects stay"
				return contract.TxRetained, false
			case answerResume:
				t.tryAgain()
				return "", true
			default: // expired, or leaving: look again and publish anew
				continue
			}
		}
		if replan := t.compensate(ctx); replan || t.mustLeave() {
			t.approved = t.approved && !replan
			continue
		}
		t.approved = false
		t.reason = t.stopping
		if slices.ContainsFunc(t.steps, hasEffect) {
			return contract.TxPartiallyCompensated, false
		}
		return contract.TxCompensated, false
	}
	return "", false
}

// hasEffect tells whether the step has an effect in the world that somebody might want undone.
func hasEffect(s *step) bool { return s.state.InEffect() && s.tool.Risk != contract.RiskReadOnly }

func (t *transaction) compensationQuestion() question {
	approval := t.resolved.Definition.Approval
	return question{about: askCompensation, quorum: approval.Quorum, fourEyes: approval.FourEyes}
}

// tryAgain takes the failed steps, and those that were skipped because of them, back to the beginning.
func (t *transaction) tryAgain() {
	t.stopping, t.undo = "", nil
	for _, s := range t.steps {
		switch s.state {
		case contract.StepFailed, contract.StepSkipped:
			s.retries, s.idle, s.unverified = 0, 0, false
			t.become(s, contract.StepPending, "to be tried again")
		}
	}
}

// publish looks at every effect, and publishes what a human is asked to allow.
func (t *transaction) publish(ctx workflow.Context) {
	looks := t.lookAtEffects(ctx)
	if t.mustLeave() {
		return
	}
	t.plans++
	now := workflow.Now(t.ctx)
	plan := contract.UndoPlan{Version: t.plans, Run: t.tx.Run, Published: now}
	if expires := t.resolved.Definition.Approval.Expires.Std(); expires > 0 {
		plan.Expires = now.Add(expires)
	}
	height := t.heights()
	for _, s := range t.steps {
		if !hasEffect(s) {
			continue
		}
		undo, why := t.undoOf(s, looks[s.def.ID])
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
	t.undo = &plan
	t.enter(contract.TxAwaitingCompensationApproval, t.stopping)
}

// lookAtEffects asks every owner, at the same time, what is there now.
func (t *transaction) lookAtEffects(ctx workflow.Context) map[string]contract.Look {
	looks := map[string]contract.Look{}
	group := workflow.NewWaitGroup(t.ctx)
	for _, s := range t.steps {
		if !hasEffect(s) || !s.tool.Compensable() {
			continue
		}
		args, err := t.args(s)
		if err != nil {
			looks[s.def.ID] = contract.Look{Verdict: contract.Inconclusive, Why: err.Error()}
			continue
		}
		group.Add(1)
		workflow.GoNamed(t.ctx, "look at "+s.def.ID, func(ctx workflow.Context) {
			defer group.Done()
			looks[s.def.ID] = t.inspect(ctx, s, args)
		})
	}
	group.Wait(ctx)
	return looks
}

// undoOf is the compensation of one step, or why its effect stays.
func (t *transaction) undoOf(s *step, look contract.Look) (contract.Undo, string) {
	undo := s.tool.Compensate
	switch {
	case undo == nil:
		return contract.Undo{}, "its contract has no compensation"
	case s.tool.Inspect == nil:
		return contract.Undo{}, "its contract has no inspector, so undoing it could not be verified"
	case undo.Within > 0 && workflow.Now(t.ctx).After(s.committed.Add(undo.Within.Std())):
		return contract.Undo{}, fmt.Sprintf("it could be undone only within %s", undo.Within)
	}
	args, err := t.undoArgs(s, look)
	if err != nil {
		return contract.Undo{}, "the arguments of its compensation cannot be filled: " + err.Error()
	}
	return contract.Undo{
		Step: s.def.ID, Undoes: s.def.Tool, Tool: undo.Server + "/" + undo.Tool, Args: args,
		Seen: look.Verdict, Effect: effectOf(look), Proof: s.proof,
	}, ""
}

// effectOf is what an approver is shown of a look: its mapped result, where that is small.
func effectOf(look contract.Look) json.RawMessage {
	const limit = 4 << 10
	if look.Result == nil || look.Result.Reduced || len(look.Result.Value) > limit {
		return nil
	}
	return look.Result.Value
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
	return s.tool.Compensate.Args.Fill(scope)
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
			if hasEffect(dependent) && dependent.tool.Compensable() {
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

// compensate carries out the approved undo plan. Every step waits for everything that depended on it. replan: what is
// there is no longer what was approved, or could not be undone as approved.
func (t *transaction) compensate(ctx workflow.Context) (replan bool) {
	t.enter(contract.TxCompensating, t.stopping)
	planned := map[string]contract.Undo{}
	for _, wave := range t.undo.Waves {
		for _, undo := range wave {
			planned[undo.Step] = undo
		}
	}
	for _, s := range t.steps {
		if _, ok := planned[s.def.ID]; !ok && hasEffect(s) && s.state != contract.StepCompensationFailed {
			t.become(s, contract.StepNotCompensable, "%s", t.whyKept(s))
		}
	}
	for {
		t.launchUndo(planned, &replan)
		t.await(ctx, func() bool {
			return t.all(func(s *step) bool { return !s.running && (replan || !t.undoDue(s, planned)) })
		})
		if replan || t.mustLeave() {
			t.settle(ctx)
			return replan
		}
		failed := t.compensationFailed()
		if failed == nil {
			return false
		}
		t.enter(contract.TxAwaitingResolution, fmt.Sprintf("step %s is COMPENSATION_FAILED: %s", failed.def.ID, failed.reason))
		t.await(ctx, func() bool {
			return slices.ContainsFunc(t.steps, func(s *step) bool { return s.resolution != nil })
		})
		if t.mustLeave() {
			return false
		}
		t.resolveCompensations()
		t.enter(contract.TxCompensating, t.stopping)
	}
}

func (t *transaction) whyKept(s *step) string {
	for _, residue := range t.undo.Kept {
		if residue.Step == s.def.ID {
			return residue.Why
		}
	}
	return "it is not in the approved plan"
}

// compensationFailed returns the first step whose compensation failed and that no human has accepted, or nil.
func (t *transaction) compensationFailed() *step {
	for _, s := range t.steps {
		if s.state == contract.StepCompensationFailed && !s.accepted {
			return s
		}
	}
	return nil
}

// resolveCompensations does what humans said of compensations that failed.
func (t *transaction) resolveCompensations() {
	for _, s := range t.steps {
		d := s.resolution
		if d == nil || s.state != contract.StepCompensationFailed {
			continue
		}
		s.resolution = nil
		if d.As == contract.ResolveAccepted {
			s.accepted = true
			t.become(s, contract.StepCompensationFailed, "%s accepts that it stays: %s", d.By, d.Reason)
			continue
		}
		s.undos = 0
		t.become(s, contract.StepCompensating, "%s asks to try again", d.By)
	}
}

// undoDue tells whether a step of the plan can be undone now: whatever depended on it is undone, or stays by decision.
func (t *transaction) undoDue(s *step, planned map[string]contract.Undo) bool {
	if _, ok := planned[s.def.ID]; !ok {
		return false
	}
	switch s.state {
	case contract.StepCommitted, contract.StepRecovered, contract.StepCompensating:
	default:
		return false
	}
	return t.undone(s, map[*step]bool{})
}

// undone tells whether every effect that depended on s, directly or not, is out of the way.
func (t *transaction) undone(s *step, seen map[*step]bool) bool {
	for _, dependent := range s.needed {
		if seen[dependent] {
			continue
		}
		seen[dependent] = true
		switch {
		case !hasEffect(dependent), dependent.state == contract.StepNotCompensable, dependent.accepted:
		default:
			return false
		}
		if !t.undone(dependent, seen) {
			return false
		}
	}
	return true
}

// launchUndo starts the compensation of every step whose turn has come.
func (t *transaction) launchUndo(planned map[string]contract.Undo, replan *bool) {
	for _, s := range t.steps {
		if s.running || *replan || t.mustLeave() || !t.undoDue(s, planned) {
			continue
		}
		s.running = true
		workflow.GoNamed(t.ctx, "undo "+s.def.ID, func(ctx workflow.Context) {
			if !t.undoStep(ctx, s, planned[s.def.ID]) {
				*replan = true
			}
			s.running = false
			t.launchUndo(planned, replan)
		})
	}
}

// undoStep undoes one step: look, compensate, look. A compensator's success proves nothing, only the look does. False:
// what would be done now is not what was approved.
func (t *transaction) undoStep(ctx workflow.Context, s *step, approved contract.Undo) bool {
	before := s.state
	if before == contract.StepCompensating { // carried over from a run before this one, or to be tried again
		before = contract.StepRecovered
		if s.proof == contract.ProofAnswer {
			before = contract.StepCommitted
		}
	}
	t.become(s, contract.StepCompensating, "looking whether it is still there")
	args, err := t.args(s)
	if err != nil {
		t.become(s, contract.StepCompensationFailed, "its arguments cannot be filled: %v", err)
		return true
	}
	look := t.inspect(ctx, s, args)
	if look.Verdict == contract.Absent && s.undos == 0 && s.proof == contract.ProofAnswer {
		// It was acknowledged and is gone: one look may be stale.
		t.sleepUntil(ctx, workflow.Now(t.ctx).Add(s.tool.Settle.Std()), s.def.ID+": absent, looking again", never)
		look = t.inspect(ctx, s, args)
	}
	sent, idle := 0, 0
	for !t.mustLeave() {
		if t.undoSettled(s, look) {
			return true
		}
		undoArgs, err := t.undoArgs(s, look)
		if err != nil || !sameJSON(undoArgs, approved.Args) {
			t.become(s, before, "what is there now is not what was approved: a new plan is needed")
			return false
		}
		if sent > s.tool.Compensate.Retries {
			t.become(s, contract.StepCompensationFailed, "still present after %d compensations", sent)
			return true
		}
		s.undos++
		t.become(s, contract.StepCompensating, "compensating with %s", s.tool.Compensate.Tool)
		out := t.callCompensate(ctx, s, undoArgs)
		t.record(s, out.Evidence)
		switch out.Kind {
		case contract.Reset:
			s.undos--
			t.reset = true
			continue
		case contract.NotExecuted:
			s.undos--
			if idle++; idle >= idleTries {
				t.become(s, contract.StepCompensationFailed, "the compensation was not executed after %d tries: %s", idle, out.Why)
				return true
			}
			t.become(s, contract.StepCompensating, "compensation not executed: %s", out.Why)
			wait := max(min(idleBackoff<<(idle-1), idleLongest), out.RetryAfter.Std())
			t.sleepUntil(ctx, workflow.Now(t.ctx).Add(wait), s.def.ID+": compensation not executed, trying again", never)
			look = t.inspect(ctx, s, args)
		default:
			sent, idle = sent+1, 0
			look = t.verifyGone(ctx, s, args, out)
		}
	}
	return true
}

// undoSettled ends the compensation of a step where the look decides it.
func (t *transaction) undoSettled(s *step, look contract.Look) bool {
	switch {
	case look.Verdict == contract.Absent && s.undos == 0:
		t.become(s, contract.StepCompensated, "gone already, verified absent by %s", s.tool.Inspect.Tool)
	case look.Verdict == contract.Absent:
		t.become(s, contract.StepCompensated, "undone, verified absent by %s", s.tool.Inspect.Tool)
	case look.Verdict == contract.Inconclusive:
		t.become(s, contract.StepCompensationFailed, "the owner cannot tell whether it is still there, or whether it is ours: %s", look.Why)
	case t.ours(s) == "":
		t.become(s, contract.StepCompensationFailed, "what is there is no longer recognisable as ours")
	default:
		return false
	}
	return true
}

// verifyGone looks whether a compensation had its effect. Absence counts at once after an acknowledgement, else when
// the call can no longer write; presence counts when the owner has settled.
func (t *transaction) verifyGone(ctx workflow.Context, s *step, args json.RawMessage, out contract.Outcome) contract.Look {
	settle := s.tool.Compensate.Settle.Std()
	acknowledged := out.Kind == contract.Acknowledged
	base := workflow.Now(t.ctx)
	if !acknowledged && !out.Answered && out.Kind != contract.Refused {
		base = latest(base, out.WriteDeadline)
	}
	horizon := base.Add(settle)
	t.become(s, contract.StepCompensating, "%s: verifying that it is absent", compensated(out))
	look := t.inspect(ctx, s, args)
	if acknowledged {
		// While it still shows, look more and more seldom until the owner must have settled.
		for wait := settle / 8; look.Verdict == contract.Present && !t.mustLeave(); wait *= 2 {
			now := workflow.Now(t.ctx)
			if !now.Before(horizon) {
				return look
			}
			next := now.Add(max(wait, 10*time.Millisecond))
			if next.After(horizon) {
				next = horizon
			}
			t.sleepUntil(ctx, next, s.def.ID+": still there, looking again", never)
			look = t.inspect(ctx, s, args)
		}
		return look
	}
	if look.Verdict == contract.Inconclusive || t.mustLeave() {
		return look
	}
	t.sleepUntil(ctx, horizon, s.def.ID+": letting "+s.tool.Compensate.Server+" settle", never)
	return t.inspect(ctx, s, args)
}

// compensated says in words what became of a compensating call.
func compensated(out contract.Outcome) string {
	if out.Kind == contract.Acknowledged {
		return "acknowledged"
	}
	return out.Why
}

func never() bool { return false }

// sameJSON tells whether two JSON values mean the same.
func sameJSON(a, b json.RawMessage) bool {
	same, err := canon.Equal(a, b)
	return err == nil && same
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

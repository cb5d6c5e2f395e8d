package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// sweep looks once more at every step that was in doubt and has ended not in effect, when its owner must have settled.
// True: something has appeared, and a human has to decide about it.
func (t *transaction) sweep(ctx workflow.Context) (appeared bool) {
	group := workflow.NewWaitGroup(t.ctx)
	for _, s := range t.steps {
		if !s.doubted || s.tool.Inspect == nil || s.state != contract.StepFailed && s.state != contract.StepCompensated {
			continue
		}
		group.Add(1)
		workflow.GoNamed(t.ctx, "last look at "+s.def.ID, func(ctx workflow.Context) {
			defer group.Done()
			if t.lastLook(ctx, s) {
				appeared = true
			}
		})
	}
	group.Wait(ctx)
	return appeared
}

// lastLook looks at one step after its horizon. What has appeared and is ours is in effect after all; what cannot be
// recognised is UNKNOWN. An inconclusive look does not undo the proof of absence that was there before.
func (t *transaction) lastLook(ctx workflow.Context, s *step) (appeared bool) {
	args, err := t.args(s)
	if err != nil {
		return false
	}
	t.sleepUntil(ctx, s.doubt.horizon, s.def.ID+": last look", never)
	if t.mustLeave() {
		return false
	}
	look := t.inspect(ctx, s, args)
	if look.Verdict != contract.Present || t.mustLeave() {
		return false
	}
	proof := t.ours(s)
	if proof == "" {
		t.become(s, contract.StepUnknown, "it had been proven absent; the last look found something that nothing proves to be ours")
		return true
	}
	if s.proof != contract.ProofAnswer {
		s.result, s.proof = t.keep(s, look.Result), proof
	}
	s.committed = workflow.Now(t.ctx)
	t.become(s, contract.StepRecovered, "it had been proven absent; the last look found it, recognised by %s", proof)
	return true
}

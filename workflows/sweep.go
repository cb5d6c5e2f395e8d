package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// sweep looks once more at every step that was in doubt and has ended not in effect, when its owner must have settled.
// True: something has appeared, and a human has to decide about it.
func (t *transaction) sweep(ctx workflow.Context) (appeared bool) {
	var doubted []*step
	for _, s := range t.steps {
		if sweepable(s) {
			doubted = append(doubted, s)
		}
	}
	if len(doubted) == 0 {
		return false
	}
	state, reason := contract.TxRunning, t.reason
	if t.state == contract.TxCompensating {
		state = t.state
	}
	t.enter(state, "the last looks before it closes")
	defer func() { t.reason = reason }()
	t.each(ctx, doubted, "last look", func(ctx workflow.Context, s *step) {
		if t.lastLook(ctx, s) {
			appeared = true
		}
	})
	return appeared
}

func sweepable(s *step) bool {
	switch s.state {
	case contract.StepFailed, contract.StepSkipped, contract.StepCompensated:
		return s.doubted && s.tool.Inspect != nil
	}
	return false
}

// lastLook looks at one step after its horizon. What has appeared and is ours is in effect after all; what cannot be
// recognised is UNKNOWN, unless a human has said already that it is not ours. An inconclusive look does not undo the
// proof of absence that was there before.
func (t *transaction) lastLook(ctx workflow.Context, s *step) (appeared bool) {
	args, err := t.args(s)
	if err != nil {
		return false
	}
	t.sleepUntil(ctx, latest(s.doubt.horizon, s.undoing.horizon), s.def.ID+": last look", never)
	if t.mustLeave() {
		return false
	}
	look := t.inspect(ctx, s, args)
	if look.Verdict != contract.Present || t.mustLeave() {
		return false
	}
	proof := t.ours(s)
	if proof == "" && s.asserted {
		return false
	}
	t.notes = append(t.notes, fmt.Sprintf("step %s had been proven absent, and was there at the last look", s.def.ID))
	if proof == "" {
		t.cannotTell(s, "it had been proven absent; the last look found something that nothing proves to be ours")
		return true
	}
	if s.proof != contract.ProofAnswer {
		s.result, s.proof = t.keep(s, look.Result), proof
	}
	s.committed, s.undoing = workflow.Now(t.ctx), undoing{}
	t.become(s, contract.StepRecovered, "it had been proven absent; the last look found it, recognised by %s", proof)
	return true
}

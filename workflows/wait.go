package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// mustLeave tells whether this run has to hand over to a new one.
func (t *transaction) mustLeave() bool { return t.reset || t.leaving }

// leave makes this run hand over to a new one: what has begun settles, and nothing more is begun. Without room for what
// would have to be carried over, the run stays.
func (t *transaction) leave() {
	if t.leaving || t.staying || t.closing || t.whole > 0 || len(t.steps) == 0 {
		return
	}
	if _, fits := t.carry(); !fits {
		t.staying = true
		return
	}
	t.leaving = true
	t.flight.recall(everything)
}

// rewind notes that this run was made by a Temporal reset.
func (t *transaction) rewind() {
	if !t.reset {
		t.reset = true
		t.changed()
		t.flight.recall(everything)
	}
}

// rewound tells whether this run was made by a Temporal reset, from what Temporal itself says of it. The answer differs
// between a run and its replay by a reset, so only what would be a run's last command may depend on it.
func (t *transaction) rewound() bool {
	info := workflow.GetInfo(t.ctx)
	return info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID
}

// await waits for a condition, and ends early where the run has to be left. It and sleepUntil are the only ways to wait
// for something that is not in flight.
func (t *transaction) await(ctx workflow.Context, condition func() bool) {
	wait(ctx, func() bool { return condition() || t.mustLeave() })
}

// settle waits until nothing is in flight. Nothing cuts it short: a call that was dispatched is never abandoned.
func (t *transaction) settle(ctx workflow.Context) {
	wait(ctx, func() bool { return t.all(func(s *step) bool { return !s.running }) })
}

// drain waits until every decision that has arrived has been judged, and every update answered. The coroutine that it
// starts runs after those of the channels, so that what came together with the event that is being handled counts too.
func (t *transaction) drain(ctx workflow.Context) {
	reached := false
	workflow.GoNamed(ctx, "drain", func(workflow.Context) { reached = true })
	wait(ctx, func() bool { return reached && t.allJudged() && workflow.AllHandlersFinished(t.ctx) })
}

// sleepUntil waits for a moment, or until condition holds. It says whether the moment came.
func (t *transaction) sleepUntil(ctx workflow.Context, moment time.Time, summary string, condition func() bool) bool {
	left := moment.Sub(workflow.Now(t.ctx))
	if left <= 0 {
		return true
	}
	met, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: left, TimerOptions: workflow.TimerOptions{Summary: summary},
	}, func() bool { return condition() || t.mustLeave() })
	must(err)
	return !met
}

// each does something for every one of the steps, for as many at the same time as there are places for calls. The run
// is not left before it has been done for all: the next one would begin anew, and never come to an end either.
func (t *transaction) each(ctx workflow.Context, steps []*step, name string, do func(workflow.Context, *step)) {
	t.whole++
	defer func() { t.whole-- }()
	group := workflow.NewWaitGroup(t.ctx)
	next := 0
	for range min(maxCalls, len(steps)) {
		group.Add(1)
		workflow.GoNamed(t.ctx, name, func(ctx workflow.Context) {
			defer group.Done()
			for next < len(steps) {
				next++
				do(ctx, steps[next-1])
			}
		})
	}
	group.Wait(ctx)
}

func wait(ctx workflow.Context, condition func() bool) { must(workflow.Await(ctx, condition)) }

// must is for waits in a disconnected context, which is never cancelled.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func never() bool { return false }

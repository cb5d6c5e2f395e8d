package workflows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/contract"
)

// question is what a human is being asked.
type question struct {
	about     string
	quorum    int
	fourEyes  bool
	approvals []string
	answer    string
	said      string    // who answered, and why
	expires   time.Time // zero: never
}

const (
	askStart        = "start"
	askCompensation = "compensation"

	answerApproved = "approved"
	answerRejected = "rejected"
	answerResume   = "resumed"
	answerStopped  = "stopped"
	answerExpired  = "expired"
)

// shortDigest is how many characters of a digest are enough to name a plan.
const shortDigest = 12

// Limits of the record of what humans said. The oldest decisions go first.
const (
	maxDecisions = 50 // those that count go last
	maxName      = 200
	maxReason    = 500
)

// newQuestion is a question under the plan's terms of approval, open from now on.
func (t *transaction) newQuestion(about string) *question {
	terms := t.resolved.Definition.Approval
	q := &question{about: about, quorum: max(terms.Quorum, 1), fourEyes: terms.FourEyes}
	if q.fourEyes && t.requester == "" {
		q.quorum = max(q.quorum, 2) // whoever asked may be one of them
	}
	if expires := terms.Expires.Std(); expires > 0 {
		q.expires = workflow.Now(t.ctx).Add(expires)
	}
	return q
}

// asking tells whether a human is being asked about this.
func (t *transaction) asking(about string) bool { return t.ask != nil && t.ask.about == about }

// answer waits for the answer to the open question. "": the run has to be left, and takes the question along.
func (t *transaction) answer(ctx workflow.Context) string {
	q := t.ask
	answered := func() bool {
		if q.about == askStart && t.stopping != "" && q.answer == "" {
			q.answer = answerStopped
		}
		return q.answer != ""
	}
	if q.expires.IsZero() {
		t.await(ctx, answered)
	} else if t.sleepUntil(ctx, q.expires, "waiting for approval", answered) && q.answer == "" {
		q.answer = answerExpired
	}
	if t.mustLeave() {
		return ""
	}
	t.ask = nil
	t.changed()
	return q.answer
}

// listen receives what humans say, by signal and by update. Every decision is judged when it arrives; one that does
// not count is recorded with the reason, and never used later.
func (t *transaction) listen() error {
	for _, s := range contract.Signals {
		name := s.Name
		channel := workflow.GetSignalChannelWithOptions(t.ctx, name, workflow.SignalChannelOptions{Description: s.Description})
		workflow.GoNamed(t.ctx, name, func(ctx workflow.Context) {
			for {
				var raw converter.RawValue
				channel.Receive(ctx, &raw)
				t.judge(ctx, name, raw)
			}
		})
		err := workflow.SetUpdateHandlerWithOptions(t.ctx, name,
			func(ctx workflow.Context, raw converter.RawValue) (contract.Judged, error) {
				ctx, _ = workflow.NewDisconnectedContext(ctx)
				judged := t.judge(ctx, name, raw)
				if !judged.Accepted {
					return judged, errors.New(judged.Why)
				}
				return judged, nil
			},
			workflow.UpdateHandlerOptions{
				Description: s.Description,
				Validator: func(_ workflow.Context, raw converter.RawValue) error {
					d, err := decode(raw)
					if err == nil {
						_, err = t.weigh(name, d)
					}
					return err
				},
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// decode reads the one JSON object of a signal, strictly: a misspelt member must not make a decision mean less than its
// sender thinks.
func decode(raw converter.RawValue) (contract.Decision, error) {
	var d contract.Decision
	data := bytes.TrimSpace(raw.Payload().GetData())
	if len(data) == 0 || data[0] != '{' {
		return d, errors.New(`malformed: want one JSON object, such as {"by": "you"}`)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return contract.Decision{}, fmt.Errorf("malformed: %w", err)
	}
	if dec.More() {
		return d, errors.New("malformed: want one JSON object, and nothing after it")
	}
	d.By = strings.TrimSpace(d.By)
	return d, nil
}

// judge decides whether a decision counts, does what it says if so, and records it, one after another in the order in
// which they arrive. A decision has to count when it arrives, and still when it has been checked: it is about what its
// sender could see. In a run made by a Temporal reset none counts: the reset may have re-applied what a human said to
// another run.
func (t *transaction) judge(ctx workflow.Context, signal string, raw converter.RawValue) contract.Judged {
	d, err := decode(raw)
	if err == nil {
		_, err = t.weigh(signal, d)
	}
	if err != nil {
		return t.note(signal, d, false, err.Error())
	}
	turn, about := t.arrived, t.subject(signal, d)
	t.arrived++
	defer func() { t.judged++ }()
	wait(ctx, func() bool { return t.judged == turn })
	run, err := t.generation(ctx, signal)
	switch {
	case err != nil:
		return t.note(signal, d, false, "it could not be checked: "+message(err))
	case run != t.tx.Run:
		t.rewind()
		return t.note(signal, d, false, "this run was made by a Temporal reset: look at what it asks next, and decide again")
	case t.subject(signal, d) != about:
		return t.note(signal, d, false, "the transaction has moved on: look at it again")
	}
	effect, err := t.weigh(signal, d)
	if err != nil {
		return t.note(signal, d, false, err.Error())
	}
	return t.note(signal, d, true, effect())
}

// generation is the run in which the worker finds itself, recorded so that a replay sees the same.
func (t *transaction) generation(ctx workflow.Context, why string) (run string, err error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: time.Minute, Summary: why})
	err = workflow.ExecuteLocalActivity(ctx, contract.ActivityGeneration).Get(ctx, &run)
	return run, err
}

// subject is what a decision is about: the open question, or the state that a step is in. An abort is about everything.
func (t *transaction) subject(signal string, d contract.Decision) any {
	switch signal {
	case contract.SignalAbort:
		return nil
	case contract.SignalResolveStep:
		return t.byID[d.Step].since
	}
	return t.ask
}

// allJudged tells whether every decision that has arrived has been judged.
func (t *transaction) allJudged() bool { return t.judged == t.arrived }

func (t *transaction) note(signal string, d contract.Decision, accepted bool, why string) contract.Judged {
	d.Result = nil // it is kept with the step
	for _, text := range []*string{&d.By, &d.Digest, &d.Run, &d.Step, (*string)(&d.As)} {
		*text = cut(*text, maxName)
	}
	d.Reason = cut(d.Reason, maxReason)
	judged := contract.Judged{
		Signal: signal, Decision: d, At: workflow.Now(t.ctx), Accepted: accepted, Why: cut(why, maxReason),
	}
	t.decisions = append(t.decisions, judged)
	if len(t.decisions) > maxDecisions {
		// What did not count goes first: who approved stays in the receipt.
		oldest := max(0, slices.IndexFunc(t.decisions, func(j contract.Judged) bool { return !j.Accepted }))
		t.decisions = slices.Delete(t.decisions, oldest, oldest+1)
	}
	t.changed()
	return judged
}

// weigh says what a decision would do now, or why it does not count. It changes nothing.
func (t *transaction) weigh(signal string, d contract.Decision) (effect func() string, err error) {
	if t.closing {
		return nil, errors.New("the transaction is closing, and nothing can be decided any more")
	}
	if signal != contract.SignalAbort && d.By == "" {
		return nil, errors.New(`nobody is named: say who decides, as in {"by": "you"}`)
	}
	if d.Run != "" && !slices.Contains(t.runs, d.Run) {
		return nil, fmt.Errorf("it names run %s, this is %s", d.Run, t.tx.Run)
	}
	switch signal {
	case contract.SignalApproveStart, contract.SignalRejectStart:
		if !t.asking(askStart) {
			return nil, fmt.Errorf("nobody is asked about the start: the transaction is %s", t.state)
		}
		return t.weighAnswer(signal == contract.SignalApproveStart, d)
	case contract.SignalApproveCompensation, contract.SignalRejectCompensation, contract.SignalResume:
		if !t.asking(askCompensation) {
			return nil, fmt.Errorf("no undo plan waits for approval: the transaction is %s", t.state)
		}
		if signal == contract.SignalResume {
			return t.weighResume(d)
		}
		approve := signal == contract.SignalApproveCompensation
		if err := t.weighDigest(approve, d); err != nil {
			return nil, err
		}
		return t.weighAnswer(approve, d)
	case contract.SignalResolveStep:
		return t.weighResolution(d)
	case contract.SignalAbort:
		if t.stopping != "" {
			return nil, fmt.Errorf("it is stopping already: %s", t.stopping)
		}
		return func() string {
			t.stop(says("aborted", d))
			return "stopping"
		}, nil
	}
	return nil, fmt.Errorf("no such signal: %s", signal)
}

// weighDigest checks that a decision is about the undo plan that is published now. Without a digest an approval counts
// only for the first plan, and never where several people have to approve.
func (t *transaction) weighDigest(approve bool, d contract.Decision) error {
	switch {
	case d.Digest != "" && len(d.Digest) >= shortDigest && strings.HasPrefix(t.undo.Digest, d.Digest):
		return nil
	case d.Digest != "":
		return fmt.Errorf("it names plan %.12s, the one that waits is %.12s: look at it again", d.Digest, t.undo.Digest)
	case !approve:
		return nil
	case !workflow.Now(t.ctx).After(t.undo.Published):
		return errors.New("it came before the plan was published")
	case t.undo.Version > 1:
		return fmt.Errorf("this is plan number %d: name its digest %.12s", t.undo.Version, t.undo.Digest)
	case t.ask.quorum > 1 || t.ask.fourEyes:
		return fmt.Errorf("several people have to approve: name the digest %.12s of the plan", t.undo.Digest)
	}
	return nil
}

// weighAnswer counts an approval towards the quorum; one rejection is enough.
func (t *transaction) weighAnswer(approve bool, d contract.Decision) (func() string, error) {
	q := t.ask
	same := func(name string) bool { return strings.EqualFold(name, d.By) }
	switch {
	case q.answer != "":
		return nil, fmt.Errorf("it was %s already", q.answer)
	case !approve:
		return func() string { q.answer, q.said = answerRejected, says("declined", d); return "declined" }, nil
	case q.fourEyes && same(t.requester):
		return nil, fmt.Errorf("%s asked for this transaction: somebody else must approve", d.By)
	case slices.ContainsFunc(q.approvals, same):
		return nil, fmt.Errorf("%s has approved already: %d of %d approvals", d.By, len(q.approvals), q.quorum)
	}
	return func() string {
		q.approvals = append(q.approvals, cut(d.By, maxName))
		t.changed()
		if len(q.approvals) < q.quorum {
			return fmt.Sprintf("%d of %d approvals", len(q.approvals), q.quorum)
		}
		q.answer, q.said = answerApproved, says("approved", d)
		return "approved"
	}, nil
}

// weighResume: forward recovery is possible where steps have failed or were skipped, and nothing was undone yet.
func (t *transaction) weighResume(d contract.Decision) (func() string, error) {
	if d.Digest != "" || t.undo.Version > 1 && d.Attempt == 0 {
		if err := t.weighDigest(true, d); err != nil {
			return nil, err
		}
	}
	q := t.ask
	again := func(s *step) bool { return s.state == contract.StepFailed || s.state == contract.StepSkipped }
	switch s, ok := t.byID[d.Step]; {
	case q.answer != "":
		return nil, fmt.Errorf("it was %s already", q.answer)
	case t.any(rolledBack):
		return nil, errors.New("the rollback has begun: it can only be finished")
	case !t.any(again):
		return nil, errors.New("no step can be tried again")
	case d.Step != "" && !ok:
		return nil, fmt.Errorf("no step is called %q", d.Step)
	case ok && !again(s):
		return nil, fmt.Errorf("step %s is %s: there is nothing to try again", d.Step, s.state)
	case ok && d.Attempt != 0 && d.Attempt != s.attempts:
		return nil, fmt.Errorf("it is about attempt %d of step %s, which is at attempt %d", d.Attempt, d.Step, s.attempts)
	}
	return func() string {
		q.answer, q.said = answerResume, says("resumed", d)
		return "trying the failed steps again"
	}, nil
}

// rolledBack tells whether the rollback has got to a step.
func rolledBack(s *step) bool {
	switch s.state {
	case contract.StepCompensating, contract.StepCompensated, contract.StepCompensationFailed, contract.StepNotCompensable:
		return true
	}
	return s.undos > 0
}

// weighResolution: a resolution names a step that waits for one, and an answer that fits its state.
func (t *transaction) weighResolution(d contract.Decision) (func() string, error) {
	s, ok := t.byID[d.Step]
	if !ok {
		return nil, fmt.Errorf("no step is called %q", d.Step)
	}
	want := []contract.Resolution{contract.ResolveCommitted, contract.ResolveAbsent, contract.ResolveInspect}
	switch {
	case !s.state.NeedsHuman() || s.accepted:
		return nil, fmt.Errorf("step %s is %s: there is nothing to resolve", d.Step, s.state)
	case s.resolution != nil:
		return nil, fmt.Errorf("step %s was resolved already, as %s", d.Step, s.resolution.As)
	case d.Attempt != 0 && d.Attempt != s.attempts:
		return nil, fmt.Errorf("it is about attempt %d of step %s, which is at attempt %d", d.Attempt, d.Step, s.attempts)
	case d.Attempt == 0 && s.attempts > 1 && (d.As == contract.ResolveCommitted || d.As == contract.ResolveAbsent):
		return nil, fmt.Errorf(`step %s is at attempt %d: say which one you mean, "attempt": %[2]d`, d.Step, s.attempts)
	case s.state == contract.StepCompensationFailed && !t.approved:
		return nil, fmt.Errorf("step %s is in the undo plan that is published next: decide about that", d.Step)
	case s.state == contract.StepCompensationFailed:
		want = []contract.Resolution{contract.ResolveRetry, contract.ResolveAccepted}
	case s.tool.Inspect == nil:
		want = want[:2]
	}
	if !slices.Contains(want, d.As) {
		return nil, fmt.Errorf(`step %s is %s: say "as" one of %v, not %q`, d.Step, s.state, want, d.As)
	}
	d.By, d.Reason = cut(d.By, maxName), cut(d.Reason, maxReason)
	return func() string {
		s.resolution = &d
		return fmt.Sprintf("step %s: %s", d.Step, d.As)
	}, nil
}

// says is what somebody did, in words: "aborted by alice: too risky".
func says(did string, d contract.Decision) string {
	by := d.By
	if by == "" {
		by = "somebody"
	}
	text := did + " by " + cut(by, maxName)
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return cut(text, maxReason)
}

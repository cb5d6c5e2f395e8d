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
}

const (
	askStart        = "start"
	askCompensation = "compensation"

	answerApproved = "approved"
	answerRejected = "rejected"
	answerResume   = "resume"
	answerStopped  = "stopped"
	answerExpired  = "expired"
)

// shortDigest is how many characters of a digest are enough to name a plan.
const shortDigest = 12

// maxDecisions bounds the decisions that are kept; the oldest go first.
const maxDecisions = 50

// question asks a human and waits for the answer; expires 0 waits for ever.
func (t *transaction) question(ctx workflow.Context, q question, expires time.Duration) string {
	q.quorum = max(q.quorum, 1)
	if q.fourEyes && t.requester == "" {
		q.quorum = max(q.quorum, 2) // whoever asked may be one of them
	}
	t.ask = &q
	defer func() { t.ask = nil }()
	answered := func() bool {
		if q.about == askStart && t.stopping != "" {
			q.answer = answerStopped
		}
		return q.answer != ""
	}
	if expires <= 0 {
		t.await(ctx, answered)
	} else if t.sleepUntil(ctx, workflow.Now(t.ctx).Add(expires), "waiting for approval", answered) && q.answer == "" {
		q.answer = answerExpired
	}
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
				decision, err := decode(raw)
				if err != nil {
					t.note(name, contract.Decision{}, false, "malformed: "+err.Error())
					continue
				}
				t.judge(ctx, name, decision)
			}
		})
		err := workflow.SetUpdateHandlerWithOptions(t.ctx, name,
			func(ctx workflow.Context, d contract.Decision) (contract.Judged, error) {
				ctx, _ = workflow.NewDisconnectedContext(ctx)
				judged := t.judge(ctx, name, d)
				if !judged.Accepted {
					return judged, errors.New(judged.Why)
				}
				return judged, nil
			},
			workflow.UpdateHandlerOptions{
				Description: s.Description,
				Validator: func(_ workflow.Context, d contract.Decision) error {
					_, err := t.weigh(name, d)
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
		return d, fmt.Errorf(`want one JSON object, such as {"by": "you"}`)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, err
	}
	if dec.More() {
		return d, errors.New("want one JSON object, and nothing after it")
	}
	return d, nil
}

// judge decides whether a decision counts, does what it says if so, and records it. In a run made by a Temporal reset
// it never counts: the reset may have re-applied what a human said to another run.
func (t *transaction) judge(ctx workflow.Context, signal string, d contract.Decision) contract.Judged {
	t.judging++
	defer func() { t.judging-- }()
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: time.Minute, Summary: signal,
	})
	var run string
	if err := workflow.ExecuteLocalActivity(ctx, contract.ActivityGeneration).Get(ctx, &run); err != nil {
		return t.note(signal, d, false, "it could not be checked: "+cause(err))
	}
	if run != t.tx.Run {
		t.reset = true
		return t.note(signal, d, false, "this run was made by a Temporal reset: look at the plan published next, and decide again")
	}
	effect, err := t.weigh(signal, d)
	if err != nil {
		return t.note(signal, d, false, err.Error())
	}
	return t.note(signal, d, true, effect())
}

func (t *transaction) note(signal string, d contract.Decision, accepted bool, why string) contract.Judged {
	judged := contract.Judged{Signal: signal, Decision: d, At: workflow.Now(t.ctx), Accepted: accepted, Why: why}
	judged.Decision.Result = nil // it is kept with the step
	t.decisions = append(t.decisions, judged)
	if extra := len(t.decisions) - maxDecisions; extra > 0 {
		t.decisions = slices.Delete(t.decisions, 0, extra)
	}
	t.changed()
	return judged
}

// weigh says what a decision would do now, or why it does not count. It changes nothing.
func (t *transaction) weigh(signal string, d contract.Decision) (effect func() string, err error) {
	if t.state.Closed() {
		return nil, fmt.Errorf("the transaction is closed: %s", t.state)
	}
	if signal != contract.SignalAbort && strings.TrimSpace(d.By) == "" {
		return nil, errors.New(`nobody is named: say who decides, as in {"by": "you"}`)
	}
	if d.Run != "" && d.Run != t.tx.Run && d.Run != t.tx.ID {
		return nil, fmt.Errorf("it names run %s, this is %s", d.Run, t.tx.Run)
	}
	switch signal {
	case contract.SignalApproveStart, contract.SignalRejectStart:
		if t.ask == nil || t.ask.about != askStart {
			return nil, fmt.Errorf("nobody is asked about the start: the transaction is %s", t.state)
		}
		return t.weighAnswer(signal == contract.SignalApproveStart, d)
	case contract.SignalApproveCompensation, contract.SignalRejectCompensation, contract.SignalResume:
		if t.ask == nil || t.ask.about != askCompensation {
			return nil, fmt.Errorf("no undo plan waits for approval: the transaction is %s", t.state)
		}
		if signal == contract.SignalResume {
			return t.weighResume()
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
			t.stop(strings.TrimSuffix(fmt.Sprintf("aborted by %s: %s", orSomebody(d.By), d.Reason), ": "))
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
	switch {
	case q.answer != "":
		return nil, fmt.Errorf("it was %s already", q.answer)
	case !approve:
		return func() string { q.answer = answerRejected; return "declined" }, nil
	case q.fourEyes && d.By == t.requester:
		return nil, fmt.Errorf("%s asked for this transaction: somebody else must approve", d.By)
	case slices.Contains(q.approvals, d.By):
		return nil, fmt.Errorf("%s has approved already: %d of %d approvals", d.By, len(q.approvals), q.quorum)
	}
	return func() string {
		q.approvals = append(q.approvals, d.By)
		if len(q.approvals) < q.quorum {
			return fmt.Sprintf("%d of %d approvals", len(q.approvals), q.quorum)
		}
		q.answer = answerApproved
		return "approved"
	}, nil
}

// weighResume: forward recovery is possible where steps have failed, and the transaction was not aborted.
func (t *transaction) weighResume() (func() string, error) {
	if t.ask.answer != "" {
		return nil, fmt.Errorf("it was %s already", t.ask.answer)
	}
	if t.all(func(s *step) bool { return s.state != contract.StepFailed && s.state != contract.StepSkipped }) {
		return nil, errors.New("no step can be tried again")
	}
	q := t.ask
	return func() string { q.answer = answerResume; return "trying the failed steps again" }, nil
}

// weighResolution: a resolution names a step that waits for one, and an answer that fits its state.
func (t *transaction) weighResolution(d contract.Decision) (func() string, error) {
	s, ok := t.byID[d.Step]
	if !ok {
		return nil, fmt.Errorf("no step is called %q", d.Step)
	}
	if !s.state.NeedsHuman() || s.accepted {
		return nil, fmt.Errorf("step %s is %s: there is nothing to resolve", d.Step, s.state)
	}
	if s.resolution != nil {
		return nil, fmt.Errorf("step %s was resolved already, as %s", d.Step, s.resolution.As)
	}
	if d.Attempt != 0 && d.Attempt != s.attempts {
		return nil, fmt.Errorf("it is about attempt %d of step %s, which is at attempt %d", d.Attempt, d.Step, s.attempts)
	}
	want := []contract.Resolution{contract.ResolveCommitted, contract.ResolveAbsent, contract.ResolveInspect}
	switch {
	case s.state == contract.StepCompensationFailed:
		want = []contract.Resolution{contract.ResolveRetry, contract.ResolveAccepted}
	case s.tool.Inspect == nil:
		want = want[:2]
	}
	if !slices.Contains(want, d.As) {
		return nil, fmt.Errorf(`step %s is %s: say "as" one of %v, not %q`, d.Step, s.state, want, d.As)
	}
	return func() string {
		s.resolution = &d
		return fmt.Sprintf("step %s: %s", d.Step, d.As)
	}, nil
}

func orSomebody(by string) string {
	if by == "" {
		return "somebody"
	}
	return by
}

package workflows_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
)

// What a call may do, within what the contract promises about the owner: everything that is answered or written is done
// and shown within settle.
var (
	executeWords = []string{
		"", "", "", "", "idle", "no-worker", "refuse", "refuse-but-commit", "error", "error-after", "error-late",
		"lost-before", "lost-after", "late", "crash", "crash-after", "crash-late", "timeout-after", "timeout-late",
		"heartbeat", "fatal", "panic", "garbage", "open", "open-after", "shown-later", "lost-shown-later", "@3s", "lost-after@1s", "idle@2s",
	}
	// Without an inspector a refusal is taken at the owner's word, so the owner keeps it.
	honestWords    = slices.DeleteFunc(slices.Clone(executeWords), func(w string) bool { return w == "refuse-but-commit" })
	inspectWords   = []string{"", "", "", "fail", "crash", "@2s"}
	undoWords      = []string{"", "", "lie", "slow", "late", "idle", "no-worker", "lost-after", "lost-before", "error", "error-after", "refuse", "crash", "open", "open-done", "@3s"}
	contractsDrawn = []string{"tx", "tx", "tx", "result", "unproven", "before", "key", "uninspected", "permanent", "idempotent", "idempotent-inspected", "read"}
)

// drawPlan draws a plan of one to eight steps. Each may need any of those before it.
func drawPlan(t *rapid.T) (contract.Definition, map[string]string) {
	var steps []contract.Step
	kinds := map[string]string{}
	for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
		s := contract.Step{ID: fmt.Sprintf("s%d", i)}
		for j := range i {
			if rapid.IntRange(0, 3).Draw(t, "needs") == 0 {
				s.Needs = append(s.Needs, fmt.Sprintf("s%d", j))
			}
		}
		kinds[s.ID] = rapid.SampledFrom(contractsDrawn).Draw(t, "contract")
		steps = append(steps, s)
	}
	def := plan(steps...)
	for _, s := range def.Steps {
		retries, kind := rapid.IntRange(0, 2).Draw(t, "retries"), kinds[s.ID]
		def = with(def, s.ID, func(c *contract.Tool) {
			c.Retries, c.Compensate.Retries = retries, retries
			switch kind {
			case "result":
				c.Inspect.Proves = []contract.Proof{contract.ProofResult}
			case "unproven":
				unproven(c)
			case "before":
				c.Inspect.Proves, c.Inspect.Before = nil, true
			case "key":
				c.Inspect.Proves, c.OursByKey = nil, true
			case "uninspected":
				uninspected(c)
			case "permanent":
				permanent(c)
			case "idempotent":
				idempotent(c)
			case "idempotent-inspected":
				c.Risk = contract.RiskIdempotent
			case "read":
				readOnly(c)
			}
		})
	}
	def.Approval = contract.Approval{
		Quorum: rapid.IntRange(1, 2).Draw(t, "quorum"), FourEyes: rapid.Bool().Draw(t, "four eyes"),
		Expires: contract.Duration(48 * time.Hour),
	}
	if rapid.IntRange(0, 4).Draw(t, "start") == 0 {
		def.Approval.Start = contract.ApprovalRequired
	}
	return def, kinds
}

// drawWorld draws owners that do what may happen.
func drawWorld(t *rapid.T) (*world, *human) {
	def, kinds := drawPlan(t)
	w := newWorld(t, def)
	for _, s := range def.Steps {
		words := executeWords
		if def.Tools[s.Tool].Inspect == nil {
			words = honestWords
		}
		w.script["execute:"+s.ID] = rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "execute")
		w.script["inspect:"+s.ID] = rapid.SliceOfN(rapid.SampledFrom(inspectWords), 0, 4).Draw(t, "inspect")
		w.script["compensate:"+s.ID] = rapid.SliceOfN(rapid.SampledFrom(undoWords), 0, 4).Draw(t, "compensate")
		if kind := kinds[s.ID]; kind != "key" && rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
			w.effects[s.ID] = []effect{{tx: "somebody else", id: "foreign"}}
		}
	}
	h := &human{w: w, t: t, random: rand.New(rand.NewSource(rapid.Int64().Draw(t, "human"))),
		said: map[string]bool{}, accepted: map[string]bool{}, undo: map[string][]string{}}
	w.human, w.executing, w.undoing = h.look, h.executing, h.undoing
	if rapid.IntRange(0, 4).Draw(t, "stop") == 0 {
		cancel := rapid.Bool().Draw(t, "cancel")
		w.at(time.Duration(rapid.IntRange(1, 40000).Draw(t, "when"))*time.Millisecond, func() {
			h.stopped = true
			if cancel {
				w.env.CancelWorkflow()
			} else {
				w.signal(contract.SignalAbort, contract.Decision{By: "bob"})
			}
		})
	}
	return w, h
}

// human is somebody who decides something whenever asked, mostly the truth.
type human struct {
	w      *world
	t      *rapid.T
	random *rand.Rand
	acting bool
	acts   int
	wrong  []string // what should not have happened

	asked    bool                // a step waited for a resolution
	resolved bool                // and the human gave one
	stopped  bool                // somebody aborted
	said     map[string]bool     // steps of which the human said something that may be wrong
	accepted map[string]bool     // steps that stay by decision
	undo     map[string][]string // arguments of the compensations that were approved, by step
}

var people = []string{"alice", "carol", "dave", "agent"}

// look is called all the time; the human takes a while to act.
func (h *human) look(s contract.Snapshot) {
	if s.State == contract.TxAwaitingResolution {
		h.asked = true
	}
	if h.acting || !s.State.NeedsHuman() {
		return
	}
	h.acting = true
	env := h.w.env
	delay := time.Duration(h.random.Int63n(int64(time.Minute)))
	if h.random.Intn(10) == 0 {
		delay = 50 * time.Hour // too late for an approval
	}
	env.RegisterDelayedCallback(func() {
		h.acting = false
		if env.IsWorkflowCompleted() || h.w.env != env {
			return
		}
		if s, err := h.w.snapshot(); err == nil && s.State.NeedsHuman() {
			h.acts++
			h.act(s)
		}
	}, delay+time.Millisecond)
}

// sometimes is true once in n, while the human has patience.
func (h *human) sometimes(n int) bool { return h.acts < 20 && h.random.Intn(n) == 0 }

func (h *human) say(signal string, d contract.Decision) {
	if d.By == "" {
		d.By = people[h.random.Intn(len(people))]
	}
	h.w.signal(signal, d)
}

func (h *human) act(s contract.Snapshot) {
	switch s.State {
	case contract.TxAwaitingStartApproval:
		if h.sometimes(8) {
			h.say(contract.SignalRejectStart, contract.Decision{})
		} else {
			h.say(contract.SignalApproveStart, contract.Decision{})
		}
	case contract.TxAwaitingCompensationApproval:
		switch {
		case s.Undo == nil:
		case h.sometimes(10):
			h.say(contract.SignalRejectCompensation, contract.Decision{})
		case h.sometimes(8):
			h.say(contract.SignalResume, contract.Decision{})
		case h.sometimes(8):
			h.say(contract.SignalApproveCompensation, contract.Decision{Digest: "0123456789abcdef"})
		default:
			h.approve(s.Undo)
			h.say(contract.SignalApproveCompensation, contract.Decision{Digest: s.Undo.Digest})
		}
	case contract.TxAwaitingResolution:
		for _, step := range s.Steps {
			h.resolve(s, step)
		}
	}
}

// approve notes what is allowed if this approval counts.
func (h *human) approve(plan *contract.UndoPlan) {
	for _, wave := range plan.Waves {
		for _, undo := range wave {
			h.undo[undo.Step] = append(h.undo[undo.Step], string(undo.Args))
		}
	}
	for _, kept := range plan.Kept {
		h.accepted[kept.Step] = true
	}
}

func (h *human) resolve(s contract.Snapshot, step contract.StepSnapshot) {
	d := contract.Decision{Step: step.ID, Attempt: step.Attempts}
	switch {
	case step.State == contract.StepCompensationFailed && !step.Accepted:
		d.As = contract.ResolveRetry
		if !h.sometimes(2) {
			d.As = contract.ResolveAccepted
			h.accepted[step.ID] = true
		}
	case step.State == contract.StepUnknown:
		h.w.mu.Lock()
		h.w.happen(h.w.env.Now())
		own, coming := h.w.own(step.ID, s.Tx), h.w.coming(step.ID)
		h.w.mu.Unlock()
		lie := h.sometimes(15)
		switch {
		case len(own) > 0 != lie:
			d.As, d.Result = contract.ResolveCommitted, json.RawMessage(`{"id":"none"}`)
			if len(own) > 0 {
				d.Result = encoded(map[string]string{"id": own[0].id})
			}
		case coming && !lie:
			return // looks again later
		default:
			d.As = contract.ResolveAbsent
		}
		if h.w.tool(step.ID).Inspect != nil && h.sometimes(4) {
			d.As, d.Result, lie = contract.ResolveInspect, nil, false
		}
		h.said[step.ID] = h.said[step.ID] || lie
	default:
		return
	}
	h.resolved = true
	h.say(contract.SignalResolveStep, d)
}

// executing checks what must hold when a call reaches an owner: nothing of a call before it is there or under way.
func (h *human) executing(call contract.Call) {
	if h.said[call.Step] || h.w.tool(call.Step).Risk != contract.RiskCritical {
		return
	}
	h.must(len(h.w.own(call.Step, call.Tx.ID)) == 0, "%s is executed again while it is in effect", call.Step)
	h.must(!h.w.coming(call.Step), "%s is executed again while a call before may still commit", call.Step)
}

// must notes what should not have happened; owners run outside of the test's own goroutine.
func (h *human) must(ok bool, format string, args ...any) {
	if !ok {
		h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
	}
}

// undoing checks what must hold when a compensation reaches an owner: it was approved just so, and what depended on it
// is out of the way.
func (h *human) undoing(call contract.Call) {
	h.must(slices.Contains(h.undo[call.Step], string(call.Args)), "not approved: compensation of %s with %s", call.Step, call.Args)
	for _, dependent := range h.dependents(call.Step) {
		if h.said[dependent] || h.accepted[dependent] || !h.w.tool(dependent).Compensable() {
			continue
		}
		h.must(len(h.w.own(dependent, call.Tx.ID)) == 0, "%s is undone before %s", call.Step, dependent)
	}
}

func (h *human) dependents(of string) []string {
	var all []string
	for _, s := range h.w.def.Steps {
		if slices.Contains(s.Needs, of) {
			all = append(append(all, s.ID), h.dependents(s.ID)...)
		}
	}
	return all
}

// coming tells whether an effect of a step is under way.
func (w *world) coming(step string) bool {
	return w.begun[step] > 0 || slices.ContainsFunc(w.pending, func(c change) bool { return c.step == step })
}

// check compares the receipt with the truth.
func (h *human) check(receipt contract.Receipt) {
	w := h.w
	w.happen(w.env.Now().Add(1000 * time.Hour))
	h.must(receipt.State.Closed(), "the final state is %s", receipt.State)
	h.must(!slices.Contains(w.log, "too late"), "a call after the end")
	honest, remain, all := true, false, true
	for _, s := range receipt.Steps {
		h.must(s.State.Settled() && s.State != contract.StepPending && s.State != contract.StepUnknown, "%s is %s", s.ID, s.State)
		all = all && s.State.InEffect()
		if h.said[s.ID] {
			honest = false
			continue
		}
		h.must(!w.doubled[s.ID], "two effects of %s", s.ID)
		exist := len(w.own(s.ID, receipt.Tx))
		remain = remain || exist > 0
		switch {
		case w.tool(s.ID).Risk == contract.RiskReadOnly:
		case s.State == contract.StepCompensationFailed:
			h.must(h.accepted[s.ID], "nobody accepted that %s stays", s.ID)
		case s.State.InEffect():
			h.must(exist == 1, "%s is %s, and exists %d times", s.ID, s.State, exist)
		default:
			h.must(exist == 0, "%s is %s, and exists", s.ID, s.State)
		}
	}
	switch receipt.State {
	case contract.TxCommitted:
		h.must(all, "COMMITTED, and not every step is in effect")
	case contract.TxRetained, contract.TxPartiallyCompensated:
	case contract.TxRejected:
		h.must(len(w.calls(contract.CallExecute)) == 0, "REJECTED, and executed")
		fallthrough
	default:
		h.must(!remain || !honest, "%s, and effects remain", receipt.State)
	}
	h.checkLog(receipt)
	if len(h.wrong) > 0 {
		report := fmt.Sprintf("%v\nplan %s\nlog %v\nruns %d, reset at %d, left at %d\ndecisions %q\n%s: %s\n",
			h.wrong, encoded(w.def), w.log, len(w.runs), w.resetAt, w.leaveAt, decisions(receipt), receipt.State, receipt.Reason)
		for _, s := range receipt.Steps {
			report += fmt.Sprintf("%s %s (said: %v): %s\n", s.ID, s.State, h.said[s.ID], s.Reason)
		}
		fmt.Println(report) // the library loses it where the failure depends on the timing of the owners
		require.Fail(h.t, report)
	}
}

// checkLog checks what must hold for the calls in their order.
func (h *human) checkLog(receipt contract.Receipt) {
	approved := slices.ContainsFunc(receipt.Decisions, func(d contract.Judged) bool {
		return d.Accepted && d.Signal == contract.SignalApproveCompensation
	})
	for i, line := range h.w.log {
		if step, ok := strings.CutPrefix(line, string(contract.CallCompensate)+" "); ok {
			h.must(approved, "%s was compensated without approval", step)
			h.must(slices.Contains(h.w.log[i:], "inspect "+step), "the compensation of %s was not verified", step)
		}
	}
	h.must(!h.asked || h.resolved || h.stopped, "UNKNOWN was left without a human")
}

func TestWhateverHappensTheReceiptIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := drawWorld(t)
		h.check(w.transact(t))
	})
}

func TestWhateverHappensOverManyRunsTheReceiptIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := drawWorld(t)
		w.leaveAt = rapid.SliceOfN(rapid.IntRange(1, 40), 1, 6).Draw(t, "leave")
		if rapid.Bool().Draw(t, "reset") {
			w.resetAt = rapid.IntRange(1, 30).Draw(t, "reset at")
		}
		w.opened = func(start contract.Start) {
			h.acting = false
			if start.Carried != nil && start.Carried.Reset {
				h.undo, h.asked = map[string][]string{}, false // what was approved before does not count
			}
		}
		h.check(w.transact(t))
	})
}

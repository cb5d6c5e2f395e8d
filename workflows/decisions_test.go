package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// waiting is a failed transaction that waits for approval of its rollback, with the given terms.
func waiting(t *testing.T, terms contract.Approval) *world {
	def := chain("a", "z")
	def.Approval = terms
	w := newWorld(t, def)
	w.script["execute:z"] = []string{"refuse"}
	return w
}

func terms(quorum int, fourEyes bool) contract.Approval {
	return contract.Approval{Quorum: quorum, FourEyes: fourEyes, Expires: contract.Duration(72 * time.Hour)}
}

// Decisions about a published plan that do not count, and why not. After each of them the plan still waits.
func TestDecisionsThatDoNotCount(t *testing.T) {
	const approve = contract.SignalApproveCompensation
	for name, c := range map[string]struct {
		terms   contract.Approval
		signal  string
		payload any
		why     string
	}{
		"nobody is named":             {terms(1, false), approve, contract.Decision{}, "nobody is named"},
		"a name of spaces":            {terms(1, false), approve, contract.Decision{By: "  "}, "nobody is named"},
		"another digest":              {terms(1, false), approve, contract.Decision{By: "alice", Digest: strings.Repeat("0", 64)}, "look at it again"},
		"a digest that is too short":  {terms(1, false), approve, contract.Decision{By: "alice", Digest: "ab"}, "look at it again"},
		"another run":                 {terms(1, false), approve, contract.Decision{By: "alice", Run: "other"}, "it names run other"},
		"no digest with a quorum":     {terms(2, false), approve, contract.Decision{By: "alice"}, "several people"},
		"no digest with four eyes":    {terms(1, true), approve, contract.Decision{By: "alice"}, "several people"},
		"null":                        {terms(1, false), approve, nil, "malformed"},
		"text":                        {terms(1, false), approve, "alice", "malformed"},
		"a number":                    {terms(1, false), approve, 7, "malformed"},
		"an array":                    {terms(1, false), approve, []string{"alice"}, "malformed"},
		"an unknown member":           {terms(1, false), approve, map[string]any{"by": "alice", "digets": "x"}, "unknown field"},
		"a wrong type":                {terms(1, false), approve, map[string]any{"by": 7}, "cannot unmarshal"},
		"declining another plan":      {terms(1, false), contract.SignalRejectCompensation, contract.Decision{By: "bob", Digest: strings.Repeat("0", 64)}, "look at it again"},
		"approving the start":         {terms(1, false), contract.SignalApproveStart, contract.Decision{By: "alice"}, "nobody is asked about the start"},
		"declining the start":         {terms(1, false), contract.SignalRejectStart, contract.Decision{By: "alice"}, "nobody is asked about the start"},
		"aborting what is stopping":   {terms(1, false), contract.SignalAbort, contract.Decision{By: "alice"}, "stopping already"},
		"resolving no step":           {terms(1, false), contract.SignalResolveStep, contract.Decision{By: "alice", Step: "x", As: contract.ResolveAbsent}, `no step is called "x"`},
		"resolving a step that is so": {terms(1, false), contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAbsent}, "nothing to resolve"},
		"resuming a good step":        {terms(1, false), contract.SignalResume, contract.Decision{By: "alice", Step: "a"}, "nothing to try again"},
		"resuming no step":            {terms(1, false), contract.SignalResume, contract.Decision{By: "alice", Step: "x"}, `no step is called "x"`},
		"resuming another attempt":    {terms(1, false), contract.SignalResume, contract.Decision{By: "alice", Step: "z", Attempt: 4}, "which is at attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting(t, c.terms)
			var rejected error
			w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
				w.signal(c.signal, c.payload)
				w.update(t, c.signal, c.payload, func(_ contract.Judged, err error) { rejected = err })
			})
			w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) > 0 }, func(s contract.Snapshot) {
				require.Equal(t, contract.TxAwaitingCompensationApproval, s.State)
				w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
			})
			receipt := w.transact(t)
			require.Equal(t, contract.TxRetained, receipt.State)
			require.Len(t, receipt.Decisions, 2, "a rejected update is not recorded: %v", receipt.Decisions)
			require.False(t, receipt.Decisions[0].Accepted)
			require.Contains(t, receipt.Decisions[0].Why, c.why)
			require.ErrorContains(t, rejected, c.why)
			require.Empty(t, w.calls(contract.CallCompensate))
		})
	}
}

// update sends an update and hands over what it answered.
func (w *world) update(t *testing.T, name string, payload any, answered func(contract.Judged, error)) {
	w.env.UpdateWorkflow(name, "", &updateCallbacks{t: t, answered: answered}, payload)
}

type updateCallbacks struct {
	t        *testing.T
	answered func(contract.Judged, error)
}

func (c *updateCallbacks) Accept()          {}
func (c *updateCallbacks) Reject(err error) { c.answered(contract.Judged{}, err) }
func (c *updateCallbacks) Complete(success any, err error) {
	judged, ok := success.(contract.Judged)
	if err == nil && !ok {
		err = errors.New("no answer")
	}
	c.answered(judged, err)
}

func TestDecisionsThatCount(t *testing.T) {
	for name, c := range map[string]struct {
		terms   contract.Approval
		payload func(contract.Snapshot) any
	}{
		"the whole digest":                      {terms(1, false), func(s contract.Snapshot) any { return contract.Decision{By: "alice", Digest: s.Undo.Digest} }},
		"its first twelve characters":           {terms(1, false), func(s contract.Snapshot) any { return contract.Decision{By: "alice", Digest: s.Undo.Digest[:12]} }},
		"no digest, for the first plan":         {terms(1, false), func(contract.Snapshot) any { return contract.Decision{By: "alice"} }},
		"a bare object, as people type it":      {terms(1, false), func(contract.Snapshot) any { return map[string]any{"by": "alice"} }},
		"the run by name":                       {terms(1, false), func(s contract.Snapshot) any { return contract.Decision{By: "alice", Run: s.Run} }},
		"four eyes, and somebody else approves": {terms(1, true), func(s contract.Snapshot) any { return contract.Decision{By: "alice", Digest: s.Undo.Digest} }},
	} {
		for _, by := range []string{"signal", "update"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				w := waiting(t, c.terms)
				answers := 0
				w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
					if by == "signal" {
						w.signal(contract.SignalApproveCompensation, c.payload(s))
						return
					}
					w.update(t, contract.SignalApproveCompensation, c.payload(s), func(judged contract.Judged, err error) {
						answers++
						require.NoError(t, err)
						require.True(t, judged.Accepted)
						require.Equal(t, "approved", judged.Why)
					})
				})
				receipt := w.transact(t)
				require.Equal(t, contract.TxCompensated, receipt.State)
				require.Len(t, receipt.Decisions, 1)
				require.True(t, receipt.Decisions[0].Accepted)
				if by == "update" {
					require.Equal(t, 1, answers, "the update is answered")
				}
			})
		}
	}
}

func TestADecisionThatComesEarlyIsNotUsedLater(t *testing.T) {
	w := waiting(t, terms(1, false))
	w.script["execute:a"] = []string{"@5s"}
	w.at(time.Second, func() {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice"})
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "alice"})
		w.signal(contract.SignalResume, contract.Decision{By: "alice"})
		w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"})
	})
	w.at(time.Hour, func() {
		s, err := w.snapshot()
		require.NoError(t, err)
		require.Equal(t, contract.TxAwaitingCompensationApproval, s.State)
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxRetained, receipt.State)
	require.Len(t, receipt.Decisions, 5)
	for _, early := range receipt.Decisions[:4] {
		require.False(t, early.Accepted, "%s: %s", early.Signal, early.Why)
		require.Contains(t, early.Why, "RUNNING")
	}
}

func TestOneDecisionIsUsedOnce(t *testing.T) {
	w := waiting(t, terms(1, false))
	w.script["compensate:a"] = []string{"@5s"}
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob", Digest: s.Undo.Digest})
	})
	w.when(contract.TxCompensating, func(s contract.Snapshot) {
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	accepted := 0
	for _, d := range receipt.Decisions {
		if d.Accepted {
			accepted++
		}
	}
	require.Equal(t, 1, accepted, "%v", decisions(receipt))
	require.Len(t, receipt.Decisions, 4)
}

func TestAQuorumNeedsDifferentPeople(t *testing.T) {
	w := waiting(t, terms(2, false))
	approve := func(by string) func(contract.Snapshot) {
		return func(s contract.Snapshot) {
			w.signal(contract.SignalApproveCompensation, contract.Decision{By: by, Digest: s.Undo.Digest})
		}
	}
	w.when(contract.TxAwaitingCompensationApproval, approve("alice"))
	for i, by := range []string{"alice", " Alice ", "bob"} {
		w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == i+1 }, func(s contract.Snapshot) {
			require.Contains(t, s.Waiting, "1 of 2 approvals")
			approve(by)(s)
		})
	}
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, []string{
		"approve-compensation: accepted",
		"approve-compensation: alice has approved already: 1 of 2 approvals",
		"approve-compensation: Alice has approved already: 1 of 2 approvals",
		"approve-compensation: accepted",
	}, decisions(receipt))
}

func TestFourEyes(t *testing.T) {
	for name, c := range map[string]struct {
		requester string
		approvers []string
		want      []string
	}{
		"the requester does not count": {"alice", []string{"alice", "bob"}, []string{"alice asked for this transaction", ""}},
		"nor in another spelling":      {"alice", []string{"ALICE", "bob"}, []string{"ALICE asked for this transaction", ""}},
		"an unknown requester: two":    {"", []string{"alice", "bob"}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting(t, terms(1, true))
			w.start.Requester = c.requester
			for i, by := range c.approvers {
				w.sees(func(s contract.Snapshot) bool {
					return s.State == contract.TxAwaitingCompensationApproval && len(s.Decisions) == i
				}, func(s contract.Snapshot) {
					w.signal(contract.SignalApproveCompensation, contract.Decision{By: by, Digest: s.Undo.Digest})
				})
			}
			receipt := w.transact(t)
			require.Equal(t, contract.TxCompensated, receipt.State)
			require.Len(t, receipt.Decisions, 2)
			for i, want := range c.want {
				require.Equal(t, want == "", receipt.Decisions[i].Accepted)
				require.Contains(t, receipt.Decisions[i].Why, want)
			}
		})
	}
}

func TestAnExpiredPlanIsLookedAtAndPublishedAnew(t *testing.T) {
	w := waiting(t, terms(1, false))
	var first contract.UndoPlan
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) { first = *s.Undo })
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.NotEqual(t, first.Digest, s.Undo.Digest)
		require.GreaterOrEqual(t, s.Undo.Published.Sub(first.Published), 72*time.Hour)
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: first.Digest})
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice"})
	})
	w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 2 }, func(s contract.Snapshot) {
		require.Equal(t, contract.TxAwaitingCompensationApproval, s.State, "%v", s.Decisions)
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, 4, w.count("inspect a"), "twice for the plans, before and after the compensation")
}

func TestPartialApprovalsEndWithTheirPlan(t *testing.T) {
	w := waiting(t, terms(2, false))
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Contains(t, s.Waiting, "0 of 2 approvals")
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "bob", Digest: s.Undo.Digest})
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	require.Equal(t, contract.TxCompensated, w.transact(t).State)
}

// A plan that wants to be approved before anything runs.
func TestStartApproval(t *testing.T) {
	asks := func(t *testing.T) *world {
		def := chain("a")
		def.Approval = terms(1, false)
		def.Approval.Start = contract.ApprovalRequired
		return newWorld(t, def)
	}
	for name, c := range map[string]struct {
		human  func(*world)
		state  contract.TxState
		reason string
	}{
		"approved": {func(w *world) {
			w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"})
		}, contract.TxCommitted, ""},
		"declined": {func(w *world) {
			w.signal(contract.SignalRejectStart, contract.Decision{By: "bob", Reason: "not today"})
		}, contract.TxRejected, "bob: not today"},
		"aborted": {func(w *world) {
			w.signal(contract.SignalAbort, contract.Decision{By: "bob"})
		}, contract.TxRejected, "aborted by bob"},
		"cancelled": {func(w *world) { w.env.CancelWorkflow() }, contract.TxRejected, "cancelled"},
		"expired":   {func(*world) {}, contract.TxRejected, "nobody approved the start in time"},
	} {
		t.Run(name, func(t *testing.T) {
			w := asks(t)
			w.when(contract.TxAwaitingStartApproval, func(s contract.Snapshot) {
				require.Empty(t, w.log)
				require.NotEmpty(t, s.Waiting)
				c.human(w)
			})
			receipt := w.transact(t)
			require.Equal(t, c.state, receipt.State)
			require.Contains(t, receipt.Reason, c.reason)
			if c.state == contract.TxRejected {
				require.Empty(t, w.log, "no call was made")
				require.Equal(t, contract.StepSkipped, states(receipt)["a"])
			}
		})
	}
	t.Run("a quorum", func(t *testing.T) {
		w := asks(t)
		w.def.Approval.Quorum = 2
		w.when(contract.TxAwaitingStartApproval, func(contract.Snapshot) {
			w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"})
			w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"})
		})
		w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 2 }, func(s contract.Snapshot) {
			require.Equal(t, contract.TxAwaitingStartApproval, s.State)
			w.signal(contract.SignalApproveStart, contract.Decision{By: "bob"})
		})
		require.Equal(t, contract.TxCommitted, w.transact(t).State)
	})
	t.Run("approved too early", func(t *testing.T) {
		w := asks(t)
		w.resolving = func() { w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"}) }
		receipt := w.transact(t)
		require.Equal(t, contract.TxRejected, receipt.State, "it expired")
		require.Contains(t, receipt.Decisions[0].Why, "nobody is asked about the start")
	})
}

// Whenever the abort comes, nothing new is started, what is in flight settles, and a human is asked about what is there.
func TestAbortAtEveryPoint(t *testing.T) {
	stops := map[string]func(*world){
		"signal": func(w *world) {
			w.signal(contract.SignalAbort, contract.Decision{By: "bob", Reason: "enough"})
		},
		"update": func(w *world) {
			w.env.UpdateWorkflow(contract.SignalAbort, "", &updateCallbacks{answered: func(contract.Judged, error) {}},
				contract.Decision{By: "bob", Reason: "enough"})
		},
		"cancellation": func(w *world) { w.env.CancelWorkflow() },
	}
	for name, c := range map[string]struct {
		script     map[string][]string
		when       func(*world, func())
		state      contract.TxState
		steps      map[string]contract.StepState
		executions []string
	}{
		"before anything ran": {
			when:  func(w *world, stop func()) { w.resolving = stop },
			state: contract.TxFailed, steps: map[string]contract.StepState{"a": contract.StepSkipped, "b": contract.StepSkipped}},
		"a call in flight": {
			script: map[string][]string{"execute:a": {"@5s"}},
			when:   func(w *world, stop func()) { w.at(time.Second, stop) },
			state:  contract.TxCompensated, steps: map[string]contract.StepState{"a": contract.StepCompensated, "b": contract.StepSkipped},
			executions: []string{"a"}},
		"a call in flight that no worker has begun": {
			script: map[string][]string{"execute:a": {"recalled@5s"}},
			when:   func(w *world, stop func()) { w.at(time.Second, stop) },
			state:  contract.TxFailed, steps: map[string]contract.StepState{"a": contract.StepFailed, "b": contract.StepSkipped}},
		"an owner settling, and absent": {
			script: map[string][]string{"execute:a": {"lost-before"}},
			when:   func(w *world, stop func()) { w.at(time.Second, stop) },
			state:  contract.TxFailed, steps: map[string]contract.StepState{"a": contract.StepFailed, "b": contract.StepSkipped},
			executions: []string{"a"}},
		"an owner settling, and committing late": {
			script: map[string][]string{"execute:a": {"late"}},
			when:   func(w *world, stop func()) { w.at(time.Second, stop) },
			state:  contract.TxCompensated, steps: map[string]contract.StepState{"a": contract.StepCompensated, "b": contract.StepSkipped},
			executions: []string{"a"}},
		"waiting to try again what was not executed": {
			script: map[string][]string{"execute:a": {"idle", "idle", "idle", "idle", "idle"}},
			when:   func(w *world, stop func()) { w.at(1500*time.Millisecond, stop) },
			state:  contract.TxFailed, steps: map[string]contract.StepState{"a": contract.StepFailed, "b": contract.StepSkipped}},
		"while a step is UNKNOWN, and the owner cannot tell again": {
			script: map[string][]string{"execute:a": {"lost-after"}, "inspect:a": {"fail", "fail"}},
			when: func(w *world, stop func()) {
				w.when(contract.TxAwaitingResolution, func(contract.Snapshot) { stop() })
				w.sees(func(s contract.Snapshot) bool {
					return s.State == contract.TxAwaitingResolution && w.count("inspect a") == 2
				}, func(contract.Snapshot) {
					w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveCommitted, Result: []byte(`{"id":"a-1"}`)})
				})
			},
			state: contract.TxCompensated, steps: map[string]contract.StepState{"a": contract.StepCompensated, "b": contract.StepSkipped},
			executions: []string{"a"}},
		"while a step is UNKNOWN, and the owner can tell now": {
			script: map[string][]string{"execute:a": {"lost-after"}, "inspect:a": {"fail"}},
			when: func(w *world, stop func()) {
				w.when(contract.TxAwaitingResolution, func(contract.Snapshot) { stop() })
			},
			state: contract.TxCompensated, steps: map[string]contract.StepState{"a": contract.StepCompensated, "b": contract.StepSkipped},
			executions: []string{"a"}},
		"while it waits for approval": {
			script: map[string][]string{"execute:b": {"refuse"}},
			when: func(w *world, stop func()) {
				w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) { stop() })
			},
			state: contract.TxCompensated, steps: map[string]contract.StepState{"a": contract.StepCompensated, "b": contract.StepFailed},
			executions: []string{"a", "b"}},
		"during the compensation": {
			script: map[string][]string{"execute:b": {"refuse"}, "compensate:a": {"@5s"}},
			when: func(w *world, stop func()) {
				w.when(contract.TxCompensating, func(contract.Snapshot) { stop() })
			},
			state: contract.TxCompensated, steps: map[string]contract.StepState{"a": contract.StepCompensated, "b": contract.StepFailed},
			executions: []string{"a", "b"}},
		"during the last look": {
			script: map[string][]string{"execute:a": {"refuse"}, "inspect:a": {"", "@5s"}},
			when:   func(w *world, stop func()) { w.at(6*time.Second, stop) },
			state:  contract.TxFailed, steps: map[string]contract.StepState{"a": contract.StepFailed, "b": contract.StepSkipped},
			executions: []string{"a"}},
	} {
		for by, stop := range stops {
			t.Run(name+" by "+by, func(t *testing.T) {
				w := newWorld(t, chain("a", "b"))
				for key, words := range c.script {
					w.script[key] = words
				}
				c.when(w, func() { stop(w) })
				w.approveRollback()
				receipt := w.transact(t)
				require.Equal(t, c.state, receipt.State, "%s %v", receipt.Reason, w.log)
				require.Equal(t, c.steps, states(receipt))
				require.Equal(t, c.executions, w.calls(contract.CallExecute))
				require.Empty(t, w.existing())
			})
		}
	}
}

func TestAnAbortedTransactionCanBeResumed(t *testing.T) {
	w := newWorld(t, chain("a", "b"))
	w.script["execute:a"] = []string{"@5s"}
	w.at(time.Second, func() { w.signal(contract.SignalAbort, contract.Decision{By: "bob"}) })
	w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
		w.signal(contract.SignalResume, contract.Decision{By: "bob", Reason: "on second thought"})
	})
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Equal(t, []string{"a", "b"}, w.existing())
}

// What a human says of an UNKNOWN step has to fit it.
func TestResolutionsThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*contract.Tool)
		decision contract.Decision
		why      string
	}{
		"another attempt":              {nil, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAbsent, Attempt: 2}, "which is at attempt 1"},
		"another step":                 {nil, contract.Decision{By: "alice", Step: "b", As: contract.ResolveAbsent}, "there is nothing to resolve"},
		"no word":                      {nil, contract.Decision{By: "alice", Step: "a"}, `say "as" one of`},
		"another word":                 {nil, contract.Decision{By: "alice", Step: "a", As: "gone"}, `say "as" one of`},
		"a word for compensations":     {nil, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAccepted}, `say "as" one of`},
		"a look, without an inspector": {uninspected, contract.Decision{By: "alice", Step: "a", As: contract.ResolveInspect}, `say "as" one of`},
		"another run":                  {nil, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAbsent, Run: "r"}, "it names run r"},
		"nobody":                       {nil, contract.Decision{Step: "a", As: contract.ResolveAbsent}, "nobody is named"},
		"forward recovery instead":     {nil, contract.Decision{By: "alice", Step: "a", As: contract.ResolveRetry}, `say "as" one of`},
	} {
		t.Run(name, func(t *testing.T) {
			def := chain("a", "b")
			if c.change != nil {
				def = with(def, "a", c.change)
			}
			w := newWorld(t, def)
			w.script["execute:a"], w.script["inspect:a"] = []string{"lost-after"}, []string{"fail"}
			w.when(contract.TxAwaitingResolution, func(contract.Snapshot) { w.signal(contract.SignalResolveStep, c.decision) })
			w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 1 }, func(s contract.Snapshot) {
				require.Equal(t, contract.TxAwaitingResolution, s.State)
				w.signal(contract.SignalResolveStep, contract.Decision{
					By: "alice", Step: "a", Attempt: 1, Run: s.Run, As: contract.ResolveCommitted, Result: []byte(`{"id":"a-1"}`)})
				w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAbsent})
			})
			receipt := w.transact(t)
			require.Equal(t, contract.TxCommitted, receipt.State)
			require.Equal(t, 1, w.executions("a"))
			require.Contains(t, receipt.Decisions[0].Why, c.why)
			require.True(t, receipt.Decisions[1].Accepted)
			require.False(t, receipt.Decisions[2].Accepted, "used once")
			step, _ := receipt.Step("a")
			require.Equal(t, contract.ProofHuman, step.Proof)
			require.JSONEq(t, `{"id":"a-1"}`, string(step.Result.Value))
			require.Nil(t, receipt.Decisions[1].Decision.Result, "it is kept with the step")
		})
	}
}

// Two steps are UNKNOWN. One is resolved to be tried again; before the other is resolved, the transaction is aborted.
func TestAnAbortBetweenTwoResolutionsLeavesNothingHalfDone(t *testing.T) {
	w := newWorld(t, parallel("a", "b"))
	w.script["execute:a"], w.script["inspect:a"] = []string{"lost-before"}, []string{"fail@1s"}
	w.script["execute:b"], w.script["inspect:b"] = []string{"lost-after"}, []string{"fail@1s"}
	w.sees(func(s contract.Snapshot) bool {
		a, _ := s.Step("a")
		b, _ := s.Step("b")
		return a.State == contract.StepUnknown && b.State == contract.StepUnknown
	}, func(contract.Snapshot) {
		w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAbsent})
	})
	w.whenStep("a", contract.StepExecuting, func(contract.Snapshot) {})
	w.sees(func(s contract.Snapshot) bool {
		a, _ := s.Step("a")
		return len(s.Decisions) == 1 && a.State == contract.StepExecuting
	}, func(contract.Snapshot) { w.signal(contract.SignalAbort, contract.Decision{By: "bob"}) })
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, map[string]contract.StepState{"a": contract.StepFailed, "b": contract.StepCompensated}, states(receipt))
	require.Equal(t, 1, w.executions("a"))
}

func TestTheRecordOfDecisionsIsBounded(t *testing.T) {
	w := waiting(t, terms(1, false))
	long := strings.Repeat("x", 10<<10)
	w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
		for range 40 {
			w.signal(contract.SignalApproveStart, contract.Decision{By: long, Reason: long, Digest: long, Step: long, Run: long})
			w.signal(contract.SignalResolveStep, contract.Decision{By: "a", Step: long})
		}
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob", Reason: long})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxRetained, receipt.State)
	require.Len(t, receipt.Decisions, 50)
	for _, d := range receipt.Decisions {
		require.Less(t, len(d.Decision.By)+len(d.Decision.Reason)+len(d.Why)+len(d.Decision.Step)+len(d.Decision.Run), 2000)
	}
	require.Less(t, len(receipt.Reason), 1000)
}

// Decisions that do not count, however many, never push out of the receipt who approved.
func TestAFloodOfDecisionsDoesNotHideWhoApproved(t *testing.T) {
	w := failing(t, nil)
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
		for i := range 80 {
			w.signal(contract.SignalApproveCompensation, contract.Decision{By: fmt.Sprintf("mallory%d", i), Digest: "0123456789abcdef"})
		}
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.LessOrEqual(t, len(receipt.Decisions), 50)
	require.True(t, slices.ContainsFunc(receipt.Decisions, func(j contract.Judged) bool {
		return j.Accepted && j.Decision.By == "alice"
	}), "%v", receipt.Decisions)
}

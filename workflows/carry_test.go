package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// story is the main story, with everything that can be carried over in it: a lost answer, a late commit, an error that
// proves nothing, a compensator that lies, one without an answer, a step that stays.
func story(t *testing.T) *world {
	def := plan(
		contract.Step{ID: "mail"},
		contract.Step{ID: "database", Needs: []string{"mail"}},
		contract.Step{ID: "compute", Needs: []string{"database"}, Args: contract.Template(`{"on":"${steps.database.result.id}"}`)},
		contract.Step{ID: "routing", Needs: []string{"database"}},
		contract.Step{ID: "frontend", Needs: []string{"compute", "routing"}, Args: contract.Template(`{"on":"${steps.routing.result.id}"}`)},
	)
	w := newWorld(t, with(def, "mail", permanent))
	w.gap = 50 * time.Millisecond
	w.script["execute:database"] = []string{"idle", "lost-before", ""}
	w.script["execute:compute"] = []string{"late"}
	w.script["execute:routing"] = []string{"error", "lost-after"}
	w.script["execute:frontend"] = []string{"refuse"}
	w.script["compensate:compute"] = []string{"lie"}
	w.script["compensate:routing"] = []string{"late"}
	w.script["compensate:database"] = []string{"idle"}
	return w
}

// However often, and wherever, the history grows long, the story comes to the same end.
func TestContinuingAsANewRunChangesNothing(t *testing.T) {
	w := story(t)
	w.approveRollback()
	want := w.transact(t)
	require.Equal(t, contract.TxPartiallyCompensated, want.State)
	require.Equal(t, []string{"mail"}, w.existing())
	require.Len(t, w.runs, 1)
	calls := w.total
	sorted := func(w *world, kind contract.CallKind) []string {
		steps := w.calls(kind)
		slices.Sort(steps)
		return steps
	}
	executed, compensated := sorted(w, contract.CallExecute), sorted(w, contract.CallCompensate)
	require.Greater(t, calls, 25)

	continued := 0
	check := func(t *testing.T, leaveAt ...int) {
		w := story(t)
		w.leaveAt = leaveAt
		w.approveRollback()
		receipt := w.transact(t)
		require.Equal(t, want.State, receipt.State, receipt.Reason)
		require.Equal(t, states(want), states(receipt))
		require.Equal(t, []string{"mail"}, w.existing())
		require.Equal(t, executed, sorted(w, contract.CallExecute), "nothing is executed twice, or forgotten")
		require.Equal(t, compensated, sorted(w, contract.CallCompensate))
		require.Equal(t, 1, receipt.Undo.Version, "an approved plan stays approved")
		require.Len(t, receipt.Decisions, 1)
		require.Equal(t, want.Tx, receipt.Tx)
		require.Zero(t, receipt.Started.Sub(w.began), "it is one transaction")
		continued += len(w.runs) - 1
	}
	for at := 1; at < calls; at++ {
		t.Run(fmt.Sprintf("at call %d", at), func(t *testing.T) { check(t, at) })
	}
	for _, every := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprintf("at every %d calls", every), func(t *testing.T) {
			var at []int
			for i := every; i < 2*calls; i += every {
				at = append(at, i)
			}
			check(t, at...)
		})
	}
	require.Greater(t, continued, calls, "but for the last looks, every call was the last of a run once")
}

// continued makes the run be left as soon as the transaction looks like something.
func (w *world) continued(sees func(contract.Snapshot) bool) {
	w.sees(sees, func(contract.Snapshot) {
		w.env.SetContinueAsNewSuggested(true)
		w.signal(contract.SignalApproveStart, contract.Decision{By: "nobody in particular"}) // something that changes
	})
}

func TestAnOpenQuestionIsTakenAlong(t *testing.T) {
	w := waiting(t, terms(2, false))
	var first contract.UndoPlan
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		first = *s.Undo
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	w.continued(func(s contract.Snapshot) bool { return len(s.Decisions) == 1 })
	w.sees(func(s contract.Snapshot) bool { return len(w.runs) == 2 && s.Undo != nil }, func(s contract.Snapshot) {
		require.Equal(t, contract.TxAwaitingCompensationApproval, s.State)
		require.Equal(t, first.Digest, s.Undo.Digest, "the same plan")
		require.True(t, first.Expires.Equal(s.Undo.Expires))
		require.Contains(t, s.Waiting, "1 of 2 approvals")
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: first.Digest})
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "bob", Digest: first.Digest})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Len(t, w.runs, 2)
	require.Equal(t, 3, w.count("inspect a"), "it was not looked at again for another plan")
	require.Contains(t, receipt.Decisions[2].Why, "has approved already")
}

func TestAnOpenQuestionStillExpires(t *testing.T) {
	w := waiting(t, terms(1, false))
	w.at(71*time.Hour, func() {
		w.env.SetContinueAsNewSuggested(true)
		w.signal(contract.SignalApproveStart, contract.Decision{By: "nobody in particular"})
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Less(t, s.Undo.Published.Sub(w.began), 73*time.Hour)
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
	})
	require.Equal(t, contract.TxRetained, w.transact(t).State)
	require.Len(t, w.runs, 2)
}

func TestAStartApprovalIsTakenAlong(t *testing.T) {
	def := chain("a")
	def.Approval = contract.Approval{Start: contract.ApprovalRequired, Quorum: 2, Expires: contract.Duration(time.Hour)}
	w := newWorld(t, def)
	w.when(contract.TxAwaitingStartApproval, func(contract.Snapshot) {
		w.signal(contract.SignalApproveStart, contract.Decision{By: "alice"})
	})
	w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 1 }, func(contract.Snapshot) {
		w.env.SetContinueAsNewSuggested(true)
		w.signal(contract.SignalResume, contract.Decision{By: "nobody in particular"})
	})
	w.sees(func(s contract.Snapshot) bool { return len(w.runs) == 2 && len(s.Decisions) == 2 }, func(contract.Snapshot) {
		w.signal(contract.SignalApproveStart, contract.Decision{By: "bob"})
	})
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Len(t, w.runs, 2)
}

// A decision is accepted in the very moment in which the run is left: it counts in the next one.
func TestADecisionAtTheEndOfARunIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		world func(*testing.T) *world
		when  contract.TxState
		name  string
		say   func(contract.Snapshot) contract.Decision
		want  contract.TxState
	}{
		"an approval": {story, contract.TxAwaitingCompensationApproval, contract.SignalApproveCompensation,
			func(s contract.Snapshot) contract.Decision {
				return contract.Decision{By: "alice", Digest: s.Undo.Digest}
			}, contract.TxPartiallyCompensated},
		"a rejection": {story, contract.TxAwaitingCompensationApproval, contract.SignalRejectCompensation,
			func(contract.Snapshot) contract.Decision { return contract.Decision{By: "alice"} }, contract.TxRetained},
		"forward recovery": {story, contract.TxAwaitingCompensationApproval, contract.SignalResume,
			func(contract.Snapshot) contract.Decision { return contract.Decision{By: "alice"} }, contract.TxCommitted},
		"a resolution": {func(t *testing.T) *world {
			w := newWorld(t, chain("a", "b"))
			w.script["execute:a"], w.script["inspect:a"] = []string{"lost-after"}, []string{"fail"}
			return w
		}, contract.TxAwaitingResolution, contract.SignalResolveStep,
			func(contract.Snapshot) contract.Decision {
				return contract.Decision{By: "alice", Step: "a", As: contract.ResolveCommitted, Result: []byte(`{"id":"a-1"}`)}
			}, contract.TxCommitted},
		"a resolution of a compensation": {func(t *testing.T) *world {
			w := failing(t, nil)
			w.script["compensate:a"] = []string{"refuse", "refuse", "refuse", "refuse"}
			w.approveRollback()
			return w
		}, contract.TxAwaitingResolution, contract.SignalResolveStep,
			func(contract.Snapshot) contract.Decision {
				return contract.Decision{By: "alice", Step: "a", As: contract.ResolveRetry}
			}, contract.TxCompensated},
		"an abort": {func(t *testing.T) *world {
			w := newWorld(t, chain("a", "b"))
			w.script["execute:a"], w.script["inspect:a"] = []string{"lost-before"}, []string{"fail", "", ""}
			return w
		}, contract.TxAwaitingResolution, contract.SignalAbort,
			func(contract.Snapshot) contract.Decision { return contract.Decision{By: "bob"} }, contract.TxFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			w.when(c.when, func(s contract.Snapshot) {
				w.env.SetContinueAsNewSuggested(true)
				w.signal(c.name, c.say(s))
			})
			receipt := w.transact(t)
			require.Equal(t, c.want, receipt.State, "%s %v", receipt.Reason, decisions(receipt))
			require.GreaterOrEqual(t, len(w.runs), 2)
			last := receipt.Decisions[len(receipt.Decisions)-1]
			require.Equal(t, c.name, last.Signal)
			require.True(t, last.Accepted, last.Why)
		})
	}
}

func TestADecisionMayNameARunBefore(t *testing.T) {
	w := waiting(t, terms(1, false))
	w.continued(func(s contract.Snapshot) bool { return s.State == contract.TxAwaitingCompensationApproval })
	w.sees(func(s contract.Snapshot) bool { return len(w.runs) == 2 }, func(s contract.Snapshot) {
		require.Equal(t, []string{testRun}, w.runs[1].Carried.Runs)
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Run: w.runs[1].Carried.Runs[0], Digest: s.Undo.Digest})
	})
	require.Equal(t, contract.TxCompensated, w.transact(t).State)
}

// What a thousand steps have to carry over fits into what Temporal takes.
func TestWhatIsCarriedOverIsBounded(t *testing.T) {
	def := thousand()
	w := newWorld(t, def)
	w.gap = time.Minute
	for _, s := range def.Steps[:500] {
		w.script["execute:"+s.ID] = []string{"error", "lost-after"} // six calls of evidence each
	}
	w.script["execute:s999"] = []string{"refuse"}
	w.leaveAt = []int{200, 2500, 3300, 4000}
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Empty(t, w.existing())
	require.Greater(t, len(w.runs), 3)
	for _, start := range w.runs[1:] {
		require.Less(t, len(encoded(start)), 2<<20)
	}
	require.Less(t, len(encoded(receipt)), 2<<20)
}

// A run that has more to hand over than Temporal takes goes on itself.
func TestARunThatCannotHandOverGoesOn(t *testing.T) {
	var steps []contract.Step
	for i := range 20 {
		steps = append(steps, contract.Step{ID: fmt.Sprintf("s%d", i)})
	}
	def := plan(steps...)
	w := newWorld(t, with(def, "s0", func(c *contract.Tool) { c.Refuse = strings.Repeat("x", 1700<<10) }))
	w.leaveAt = []int{5}
	require.Equal(t, contract.TxCommitted, w.transact(t).State)
	require.Len(t, w.runs, 1)
}

// rewound runs the story up to a call, and then lets the run find out that a Temporal reset had made it.
func rewound(t *testing.T, w *world, at int) contract.Receipt {
	w.resetAt = at
	return w.transact(t)
}

// After a reset every owner is asked, nothing is executed by itself, and what was approved has to be approved again.
func TestAResetRunActsOnNothing(t *testing.T) {
	w := story(t)
	w.approveRollback()
	w.transact(t)
	calls, once := w.total, w.made
	resets := 0
	for at := 1; at <= calls; at++ {
		t.Run(fmt.Sprintf("at call %d", at), func(t *testing.T) {
			w := story(t)
			// A human who approves whatever is asked, and says of what nobody can tell what is true.
			for version := range 6 {
				w.approvePlan(version)
			}
			tells := func(id string) {
				w.whenStep(id, contract.StepUnknown, func(s contract.Snapshot) {
					as := contract.ResolveAbsent
					if len(w.effects[id]) > 0 {
						as = contract.ResolveCommitted
					}
					w.env.RegisterDelayedCallback(func() {
						w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: id, As: as, Result: encoded(map[string]string{"id": id + "-1"})})
					}, time.Minute)
				})
			}
			for _, s := range w.def.Steps {
				tells(s.ID)
			}
			receipt := rewound(t, w, at)
			if len(w.runs) == 1 {
				require.Less(t, calls-at, 12, "nothing was left to be done but looks")
				return
			}
			resets++
			carried := w.runs[1].Carried
			require.True(t, carried.Reset)
			require.Equal(t, testRun, carried.Tx)
			require.Contains(t, strings.Join(receipt.Notes, "\n"), "Temporal reset")
			for step, made := range w.made {
				require.LessOrEqual(t, made, once[step], "%s was executed again", step)
			}
			switch receipt.State {
			case contract.TxCommitted:
				require.Equal(t, []string{"compute", "database", "frontend", "mail", "routing"}, w.existing())
			case contract.TxPartiallyCompensated:
				require.Equal(t, []string{"mail"}, w.existing())
			default:
				require.Contains(t, []contract.TxState{contract.TxFailed, contract.TxCompensated}, receipt.State, receipt.Reason)
				require.Empty(t, w.existing())
			}
		})
	}
	require.Greater(t, resets, 15)
}

// The run that was reset had gone on to the end: everything is there, though this history knows of nothing.
func TestAResetFindsWhatTheOtherRunDid(t *testing.T) {
	w := newWorld(t, chain("a", "b", "c"))
	for _, s := range w.def.Steps {
		w.create(s.ID, testRun)
	}
	receipt := rewound(t, w, 1)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Equal(t, []string{"a", "b", "c"}, w.existing())
	require.Empty(t, w.calls(contract.CallExecute), "nothing is executed again")
	require.Equal(t, map[string]contract.StepState{
		"a": contract.StepRecovered, "b": contract.StepRecovered, "c": contract.StepRecovered,
	}, states(receipt))
}

// The run that was reset had undone everything, by approval. The approval does not count again.
func TestAResetDoesNotApproveByItself(t *testing.T) {
	w := failing(t, nil)
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		w.run = "the run that was reset"
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Empty(t, w.calls(contract.CallCompensate))
		require.False(t, s.Decisions[0].Accepted)
		require.Contains(t, s.Decisions[0].Why, "Temporal reset")
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice"})
	})
	w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 2 }, func(s contract.Snapshot) {
		require.Contains(t, s.Decisions[1].Why, "name its digest", "a bare approval is not enough any more")
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, 1, w.executions("z"), "what had failed is not tried again by itself")
	require.Len(t, w.runs, 2)
}

func TestAResetOfADeclinedStartAsksTheOwners(t *testing.T) {
	def := chain("a")
	def.Approval.Start = contract.ApprovalRequired
	w := newWorld(t, def)
	w.when(contract.TxAwaitingStartApproval, func(contract.Snapshot) {
		w.create("a", testRun) // the other run had been approved
		w.run = "the run that was reset"
		w.signal(contract.SignalRejectStart, contract.Decision{By: "bob"})
	})
	w.sees(func(s contract.Snapshot) bool { return len(w.runs) == 2 && s.State == contract.TxAwaitingStartApproval }, func(contract.Snapshot) {
		w.signal(contract.SignalRejectStart, contract.Decision{By: "bob"})
	})
	w.approvePlan(2)
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State, "not REJECTED: something had happened")
	require.Empty(t, w.existing())
}

func TestAResetLeavesReadsAlone(t *testing.T) {
	w := newWorld(t, with(chain("read", "a"), "read", readOnly))
	receipt := rewound(t, w, 2)
	require.Equal(t, contract.TxFailed, receipt.State)
	require.Equal(t, 1, w.executions("read"), "a read is neither asked about nor repeated")
	require.Zero(t, w.executions("a"), "what a reset rewound is not executed by itself")
}

// What cannot be asked about is UNKNOWN; what is absent is executed only when a human says so.
func TestAfterAResetAHumanDecidesHowItGoesOn(t *testing.T) {
	w := newWorld(t, with(chain("a", "b"), "a", uninspected))
	resolves(contract.ResolveCommitted)(w)
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		require.Zero(t, w.executions("b"))
		w.signal(contract.SignalResume, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	receipt := rewound(t, w, 2)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Equal(t, contract.ProofHuman, receipt.Steps[0].Proof)
	require.Equal(t, []string{"a", "b"}, w.existing())
}

// What only a run can write is not believed when somebody types it: an approval that nobody gave approves nothing.
func TestNobodyStartsInTheMiddle(t *testing.T) {
	w := failing(t, nil)
	w.script["compensate:a"] = []string{"@5s"}
	w.approveRollback()
	w.when(contract.TxCompensating, func(contract.Snapshot) {
		w.env.SetContinueAsNewSuggested(true)
		w.signal(contract.SignalResume, contract.Decision{By: "nobody in particular"})
	})
	w.transact(t)
	require.Len(t, w.runs, 2)
	require.True(t, w.runs[1].Carried.Approved)

	forged := failing(t, nil)
	forged.start = w.runs[1]
	forged.create("a", testRun)
	forged.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		require.Empty(t, forged.calls(contract.CallCompensate))
		forged.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
	})
	receipt := forged.transact(t)
	require.Equal(t, contract.TxRetained, receipt.State)
	require.Empty(t, forged.calls(contract.CallCompensate))
	require.Empty(t, forged.calls(contract.CallExecute))
}

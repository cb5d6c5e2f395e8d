package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// failing is a plan of step a, which succeeds, and step z after it, which is refused: a has to be undone.
func failing(t *testing.T, change func(*contract.Tool)) *world {
	def := chain("a", "z")
	if change != nil {
		def = with(def, "a", change)
	}
	w := newWorld(t, def)
	w.script["execute:z"] = []string{"refuse"}
	return w
}

// What the compensation of one step may do, and what must come of it.
func TestOneCompensation(t *testing.T) {
	for name, c := range map[string]struct {
		execute, inspect, compensate []string
		change                       func(*contract.Tool)
		state                        contract.TxState
		step                         contract.StepState
		compensations                int
		looks                        int
		exist                        int
		human                        func(*world)
	}{
		"acknowledged, and absent at one look": {
			state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 3},
		"acknowledged, and done a little later: looked at until it is gone": {
			compensate: []string{"slow"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 6},
		"a lie: compensated again after the owner had its time": {
			compensate: []string{"lie"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 2, looks: 8},
		"nothing but lies: a human has it tried again": {
			compensate: []string{"lie", "lie", "lie", "lie"}, state: contract.TxCompensated, step: contract.StepCompensated,
			compensations: 5, looks: 24, human: retriesCompensation},
		"nothing but lies: a human accepts that it stays": {
			compensate: []string{"lie", "lie", "lie", "lie"}, state: contract.TxPartiallyCompensated,
			step: contract.StepCompensationFailed, compensations: 4, looks: 22, exist: 1, human: acceptsResidue},
		"no answer, but done: two looks": {
			compensate: []string{"lost-after"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4},
		"no answer, and done late: two looks": {
			compensate: []string{"late"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4},
		"no answer, and not done: again after two looks": {
			compensate: []string{"lost-before"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 2, looks: 5},
		"an error answer, but done": {
			compensate: []string{"error-after"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4},
		"an error answer, and not done": {
			compensate: []string{"error"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 2, looks: 5},
		"refused every time": {
			compensate: []string{"refuse", "refuse", "refuse", "refuse"}, state: contract.TxPartiallyCompensated,
			step: contract.StepCompensationFailed, compensations: 4, looks: 10, exist: 1, human: acceptsResidue},
		"taken and not finished, but done: two looks": {
			compensate: []string{"open-done"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4},
		"taken and not finished: not sent again by itself": {
			compensate: []string{"open"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 2, looks: 6,
			human: retriesCompensation},
		"the worker fails: in doubt": {
			compensate: []string{"crash"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 2, looks: 5},
		"not executed: tried again, looked at before": {
			compensate: []string{"idle", "no-worker"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 5},
		"not executed, again and again": {
			compensate: []string{"idle", "idle", "idle", "idle", "idle", "idle", "idle", "idle"}, state: contract.TxPartiallyCompensated,
			step: contract.StepCompensationFailed, looks: 9, exist: 1, human: acceptsResidue},
		"the inspector cannot tell before: nothing is called": {
			inspect: []string{"", "fail"}, state: contract.TxPartiallyCompensated, step: contract.StepCompensationFailed, looks: 2,
			exist: 1, human: acceptsResidue},
		"the inspector cannot tell before: a human has it tried again": {
			inspect: []string{"", "fail"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4,
			human: retriesCompensation},
		"the inspector cannot tell after: not compensated again until it could": {
			inspect: []string{"", "", "crash"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4,
			human: retriesCompensation},
		"the inspector cannot tell after a call without an answer: a retry waits until that one cannot write": {
			compensate: []string{"late"}, inspect: []string{"", "", "fail"}, state: contract.TxCompensated, step: contract.StepCompensated,
			compensations: 1, looks: 5, human: retriesCompensation},
		"a stale look shows it absent: looked at again before it counts": {
			inspect: []string{"", "stale"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4},
		"recovered before: undone by what the look found": {
			execute: []string{"lost-after"}, state: contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 5},
		"not recognisable as ours: it stays": {
			change: unproven, state: contract.TxPartiallyCompensated, step: contract.StepNotCompensable, looks: 1, exist: 1},
		"recognised by its own result": {
			change: func(c *contract.Tool) { c.Inspect.Proves = []contract.Proof{contract.ProofResult} },
			state:  contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 3},
		"recognised by a look before": {
			change: func(c *contract.Tool) { c.Inspect.Proves, c.Inspect.Before = nil, true },
			state:  contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 4},
		"recognised by key": {
			change: func(c *contract.Tool) { c.Inspect.Proves, c.OursByKey = nil, true },
			state:  contract.TxCompensated, step: contract.StepCompensated, compensations: 1, looks: 3},
		"without a compensator: it stays": {
			change: permanent, state: contract.TxPartiallyCompensated, step: contract.StepNotCompensable, exist: 1},
		"a compensator without an inspector cannot be verified: it stays": {
			change: func(c *contract.Tool) { c.Inspect = nil },
			state:  contract.TxPartiallyCompensated, step: contract.StepNotCompensable, exist: 1},
		"its result has nothing to undo it by: it stays": {
			change: func(c *contract.Tool) { c.Compensate.Args = contract.Template(`{"id":"${result.nothing}"}`) },
			state:  contract.TxPartiallyCompensated, step: contract.StepNotCompensable, looks: 1, exist: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := failing(t, c.change)
			w.script["execute:a"], w.script["inspect:a"], w.script["compensate:a"] = c.execute, c.inspect, c.compensate
			w.approveRollback()
			if c.human != nil {
				c.human(w)
			}
			receipt := w.transact(t)
			step, _ := receipt.Step("a")
			require.Equal(t, c.state, receipt.State, "%s: %s", step.State, step.Reason)
			require.Equal(t, c.step, step.State, step.Reason)
			require.Equal(t, c.compensations, w.count("compensate a"), "compensations")
			require.Equal(t, c.looks, w.count("inspect a"), "looks: %v", w.log)
			require.Len(t, w.existing(), c.exist)
			require.Equal(t, c.compensations, step.Undos)
		})
	}
}

// resolvesCompensation answers the first failed compensation.
func resolvesCompensation(as contract.Resolution) func(*world) {
	return func(w *world) {
		w.when(contract.TxAwaitingResolution, func(s contract.Snapshot) {
			for _, step := range s.Steps {
				if step.State == contract.StepCompensationFailed {
					w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: step.ID, As: as, Reason: "looked myself"})
				}
			}
		})
	}
}

var (
	retriesCompensation = resolvesCompensation(contract.ResolveRetry)
	acceptsResidue      = resolvesCompensation(contract.ResolveAccepted)
)

func TestNothingIsCompensatedWithoutApproval(t *testing.T) {
	w := failing(t, nil)
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		require.Empty(t, w.calls(contract.CallCompensate))
		require.Equal(t, []string{"a"}, w.existing())
		require.Len(t, s.Undo.Waves, 1)
		undo := s.Undo.Waves[0][0]
		require.JSONEq(t, `{"id":"a-1"}`, string(undo.Args))
		require.JSONEq(t, `{"id":"a-1"}`, string(undo.Effect))
		require.Equal(t, contract.Present, undo.Seen)
		require.Equal(t, contract.ProofAnswer, undo.Proof)
		require.Equal(t, "owner/create_a", undo.Undoes)
		require.Equal(t, "owner/delete_a", undo.Tool)
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob", Reason: "we keep it"})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxRetained, receipt.State)
	require.Contains(t, receipt.Reason, "bob: we keep it")
	require.Equal(t, []string{"a"}, w.existing())
	require.Empty(t, w.calls(contract.CallCompensate))
}

func TestNothingInEffectFailsWithoutAsking(t *testing.T) {
	w := newWorld(t, chain("a", "b"))
	w.script["execute:a"] = []string{"refuse"}
	receipt := w.transact(t)
	require.Equal(t, contract.TxFailed, receipt.State)
	require.Equal(t, contract.StepSkipped, states(receipt)["b"])
	require.Equal(t, []string{"RUNNING"}, w.states)
}

func TestReadsHaveNoEffectToUndo(t *testing.T) {
	def := with(chain("read", "a", "z"), "read", readOnly)
	w := newWorld(t, def)
	w.script["execute:z"] = []string{"refuse"}
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		require.Len(t, s.Undo.Waves, 1)
		require.Empty(t, s.Undo.Kept)
	})
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, contract.StepCommitted, states(receipt)["read"])

	w = newWorld(t, with(chain("read", "z"), "read", readOnly))
	w.script["execute:z"] = []string{"refuse"}
	require.Equal(t, contract.TxFailed, w.transact(t).State, "a read leaves nothing behind")
}

func TestWhatCannotBeUndoneIsListedAsKept(t *testing.T) {
	w := newWorld(t, with(chain("mail", "b", "z"), "mail", permanent))
	w.script["execute:z"] = []string{"refuse"}
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		require.Len(t, s.Undo.Kept, 1)
		require.Equal(t, "mail", s.Undo.Kept[0].Step)
		require.Contains(t, s.Undo.Kept[0].Why, "no compensation")
	})
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxPartiallyCompensated, receipt.State)
	require.Equal(t, map[string]contract.StepState{
		"mail": contract.StepNotCompensable, "b": contract.StepCompensated, "z": contract.StepFailed,
	}, states(receipt))
}

func TestWhatIsGoneAlreadyIsNotCalledAgain(t *testing.T) {
	for name, c := range map[string]struct {
		execute string
		looks   int
	}{
		"acknowledged: two looks":                                      {"", 3},
		"recovered, so the inspector has shown it: one look is enough": {"lost-after", 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := failing(t, nil)
			w.script["execute:a"] = []string{c.execute}
			w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) { w.remove("a", "a-1") })
			w.approveRollback()
			receipt := w.transact(t)
			require.Equal(t, contract.TxCompensated, receipt.State)
			require.Empty(t, w.calls(contract.CallCompensate))
			require.Equal(t, c.looks, w.count("inspect a"))
		})
	}
}

func TestSomebodyElsesResourceIsNotDeleted(t *testing.T) {
	w := failing(t, func(c *contract.Tool) { c.Inspect.Proves = []contract.Proof{contract.ProofResult} })
	w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
		w.remove("a", "a-1")
		w.create("a", "somebody else")
	})
	w.approveRollback()
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State, "ours is gone")
	require.Equal(t, []string{"a"}, w.existing(), "theirs is still there")
	require.Empty(t, w.calls(contract.CallCompensate))
}

func TestUndoOnlyWithinItsTime(t *testing.T) {
	within := func(c *contract.Tool) { c.Compensate.Within = contract.Duration(time.Hour) }
	t.Run("too late when it is planned", func(t *testing.T) {
		w := newWorld(t, with(chain("a", "b", "z"), "a", within))
		w.script["execute:b"], w.script["execute:z"] = []string{"@2h"}, []string{"refuse"}
		w.approveRollback()
		receipt := w.transact(t)
		require.Equal(t, contract.TxPartiallyCompensated, receipt.State)
		require.Equal(t, contract.StepNotCompensable, states(receipt)["a"])
		require.Equal(t, []string{"b"}, w.calls(contract.CallCompensate))
	})
	t.Run("too late when it was approved: a new plan says so", func(t *testing.T) {
		w := failing(t, within)
		w.at(2*time.Hour, func() {
			s, err := w.snapshot()
			require.NoError(t, err)
			w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
		})
		w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
			require.Empty(t, s.Undo.Waves)
			require.Contains(t, s.Undo.Kept[0].Why, "only within 1h")
		})
		w.approvePlan(2)
		receipt := w.transact(t)
		require.Equal(t, contract.TxPartiallyCompensated, receipt.State)
		require.Empty(t, w.calls(contract.CallCompensate))
	})
}

func TestChangedArgumentsNeedANewApproval(t *testing.T) {
	w := failing(t, nil)
	w.script["execute:a"] = []string{"lost-after"}
	var first string
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		first = s.Undo.Digest
		tx := w.effects["a"][0].tx
		w.remove("a", "a-1") // the owner has moved it: same thing, another id
		w.create("a", tx)
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Empty(t, w.calls(contract.CallCompensate), "nothing is undone that was not approved")
		require.NotEqual(t, first, s.Undo.Digest)
		require.JSONEq(t, `{"id":"a-2"}`, string(s.Undo.Waves[0][0].Args))
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: first})
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice"})
	})
	w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 3 }, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Empty(t, w.existing())
	require.True(t, receipt.Decisions[0].Accepted)
	require.Contains(t, receipt.Decisions[1].Why, "look at it again")
	require.Contains(t, receipt.Decisions[2].Why, "name its digest")
	require.True(t, receipt.Decisions[3].Accepted)
}

func TestUndoGoesBackwardsInWaves(t *testing.T) {
	def := diamond()
	def.Steps = append(def.Steps, plan(contract.Step{ID: "z", Needs: []string{"bottom"}}).Steps...)
	def.Tools["owner/create_z"] = plan(contract.Step{ID: "z"}).Tools["owner/create_z"]
	w := newWorld(t, def)
	w.script["execute:z"] = []string{"refuse"}
	w.script["compensate:left"], w.script["compensate:right"] = []string{"@2s"}, []string{"@2s"}
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		var waves [][]string
		for _, wave := range s.Undo.Waves {
			var ids []string
			for _, undo := range wave {
				ids = append(ids, undo.Step)
			}
			waves = append(waves, ids)
		}
		require.Equal(t, [][]string{{"bottom"}, {"left", "right"}, {"top"}}, waves)
	})
	w.approveRollback()
	require.Equal(t, contract.TxCompensated, w.transact(t).State)
	order := w.calls(contract.CallCompensate)
	require.Equal(t, "bottom", order[0])
	require.ElementsMatch(t, []string{"left", "right"}, order[1:3])
	require.Equal(t, "top", order[3])
	require.Equal(t, 2, w.most.calls, "the two of a wave are undone at the same time")
}

// left cannot be undone: top waits for it, right does not.
func TestAFailedCompensationHoldsUpWhatItDependsOnOnly(t *testing.T) {
	for name, c := range map[string]struct {
		as    contract.Resolution
		state contract.TxState
		exist []string
	}{
		"tried again": {contract.ResolveRetry, contract.TxCompensated, nil},
		"accepted":    {contract.ResolveAccepted, contract.TxPartiallyCompensated, []string{"left"}},
	} {
		t.Run(name, func(t *testing.T) {
			def := diamond()
			w := newWorld(t, def)
			w.script["execute:bottom"] = []string{"refuse"}
			w.script["compensate:left"] = []string{"refuse", "refuse", "refuse", "refuse"}
			w.script["compensate:right"] = []string{"lie", "lie", "@90s"}
			w.approveRollback()
			w.when(contract.TxAwaitingResolution, func(s contract.Snapshot) {
				right, _ := s.Step("right")
				require.Equal(t, contract.StepCompensating, right.State, "right goes on, and a human is asked all the same")
			})
			w.whenStep("right", contract.StepCompensated, func(s contract.Snapshot) {
				top, _ := s.Step("top")
				require.Equal(t, contract.StepCommitted, top.State, "top waits for left")
				require.Equal(t, contract.TxAwaitingResolution, s.State)
				w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "left", As: c.as})
			})
			receipt := w.transact(t)
			require.Equal(t, c.state, receipt.State)
			require.Equal(t, c.exist, w.existing())
			require.Equal(t, contract.StepCompensated, states(receipt)["top"])
		})
	}
}

func TestResumeTriesTheFailedStepsAgain(t *testing.T) {
	w := newWorld(t, chain("a", "b", "c"))
	w.script["execute:b"] = []string{"refuse"}
	w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
		w.signal(contract.SignalResume, contract.Decision{By: "alice", Step: "b", Attempt: 1})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCommitted, receipt.State)
	require.Equal(t, []string{"a", "b", "b", "c"}, w.calls(contract.CallExecute))
	require.Equal(t, []string{"a", "b", "c"}, w.existing())
	require.Nil(t, receipt.Undo, "no undo plan is left over")
}

func TestResumeThatFailsAgainAsksAgain(t *testing.T) {
	w := newWorld(t, chain("a", "b"))
	w.script["execute:b"] = []string{"refuse", "refuse"}
	w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
		w.signal(contract.SignalResume, contract.Decision{By: "alice"})
	})
	w.approvePlan(2)
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Equal(t, 2, w.executions("b"))
}

func TestThereIsNoWayForwardOnceTheRollbackHasBegun(t *testing.T) {
	w := newWorld(t, chain("a", "b", "z"))
	w.script["execute:z"], w.script["execute:a"] = []string{"refuse"}, []string{"lost-after"}
	w.when(contract.TxAwaitingCompensationApproval, func(s contract.Snapshot) {
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	w.whenStep("b", contract.StepCompensated, func(contract.Snapshot) {
		tx := w.effects["a"][0].tx
		w.remove("a", "a-1")
		w.create("a", tx)
	})
	w.script["compensate:b"] = []string{"slow"}
	w.script["inspect:a"] = []string{"", "", "@1s"} // leaves time for the change
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		w.signal(contract.SignalResume, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 2 }, func(s contract.Snapshot) {
		require.Contains(t, s.Decisions[1].Why, "the rollback has begun")
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Empty(t, w.existing())
}

// The owner took longer than it had promised: what was proven absent appears after all.
func TestTheLastLookFindsALateCommit(t *testing.T) {
	for name, c := range map[string]struct {
		def   contract.Definition
		plans []int
	}{
		"in a transaction that would have failed":           {chain("late"), []int{1}},
		"in a transaction that would have been compensated": {chain("a", "late"), []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, with(c.def, "late", func(tool *contract.Tool) { tool.Retries = 0 }))
			w.script["execute:late"] = []string{"too-late"}
			for _, version := range c.plans {
				w.approvePlan(version)
			}
			if len(c.plans) == 1 {
				w.script["inspect:late"] = []string{"", "", "@2s"}
			}
			w.script["compensate:a"] = []string{"@3s"}
			receipt := w.transact(t)
			require.Equal(t, contract.TxCompensated, receipt.State)
			require.Empty(t, w.existing())
			require.Equal(t, contract.StepCompensated, states(receipt)["late"])
			require.Len(t, receipt.Notes, 1)
			require.Equal(t, len(c.plans), receipt.Undo.Version, "a fresh approval")
			require.Equal(t, 1, w.count("compensate late"))
		})
	}
}

func TestTheLastLookAlsoFollowsADeclinedRollback(t *testing.T) {
	w := newWorld(t, with(chain("a", "late"), "late", func(tool *contract.Tool) { tool.Retries = 0 }))
	w.script["execute:late"] = []string{"too-late"}
	w.when(contract.TxAwaitingCompensationApproval, func(contract.Snapshot) {
		w.env.RegisterDelayedCallback(func() {
			w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
		}, 10*time.Second)
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Len(t, s.Undo.Waves, 2, "both are offered")
		w.signal(contract.SignalRejectCompensation, contract.Decision{By: "bob"})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxRetained, receipt.State)
	require.Equal(t, []string{"a", "late"}, w.existing())
	require.Equal(t, contract.StepRecovered, states(receipt)["late"])
}

// What a human has called absent, and what nobody can tell from another's, is not asked about for ever.
func TestAnAssertedAbsenceIsAskedAboutOnce(t *testing.T) {
	w := newWorld(t, with(chain("a"), "a", func(c *contract.Tool) { c.Inspect.Proves, c.Retries = nil, 0 }))
	w.script["execute:a"] = []string{"lost-before"}
	w.create("a", "somebody else")
	resolves(contract.ResolveAbsent)(w)
	receipt := w.transact(t)
	require.Equal(t, contract.TxFailed, receipt.State)
	require.Equal(t, 1, w.executions("a"))
	require.Equal(t, []string{"a"}, w.existing(), "somebody else's")
}

func TestReplanKeepsWhatWasAccepted(t *testing.T) {
	// a is accepted as a residue, b (recovered, independent) has changed when its turn comes: the new plan keeps a.
	w := newWorld(t, plan(contract.Step{ID: "a"}, contract.Step{ID: "b"}, contract.Step{ID: "c", Needs: []string{"b"}},
		contract.Step{ID: "z", Needs: []string{"a", "c"}}))
	w.script["execute:z"], w.script["execute:b"] = []string{"refuse"}, []string{"lost-after"}
	w.script["compensate:a"] = []string{"refuse", "refuse", "refuse", "refuse"}
	w.script["compensate:c"] = []string{"@10m"}
	w.approveRollback()
	acceptsResidue(w)
	w.whenStep("a", contract.StepCompensationFailed, func(contract.Snapshot) {
		tx := w.effects["b"][0].tx
		w.remove("b", "b-1")
		w.create("b", tx)
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Len(t, s.Undo.Waves, 1)
		require.Equal(t, "b", s.Undo.Waves[0][0].Step)
		require.Len(t, s.Undo.Kept, 1)
		require.Contains(t, s.Undo.Kept[0].Why, "alice accepts that it stays")
	})
	w.approvePlan(2)
	receipt := w.transact(t)
	require.Equal(t, contract.TxPartiallyCompensated, receipt.State)
	require.Equal(t, []string{"a"}, w.existing())
}

func TestANewPlanTriesFailedCompensationsAgain(t *testing.T) {
	w := newWorld(t, plan(contract.Step{ID: "a"}, contract.Step{ID: "b"}, contract.Step{ID: "c", Needs: []string{"b"}},
		contract.Step{ID: "z", Needs: []string{"a", "c"}}))
	w.script["execute:z"], w.script["execute:b"] = []string{"refuse"}, []string{"lost-after"}
	w.script["compensate:a"] = []string{"refuse", "refuse", "refuse", "refuse"}
	w.script["compensate:c"] = []string{"@10m"}
	w.approveRollback()
	w.whenStep("a", contract.StepCompensationFailed, func(contract.Snapshot) {
		tx := w.effects["b"][0].tx
		w.remove("b", "b-1")
		w.create("b", tx)
	})
	w.sees(func(s contract.Snapshot) bool { return s.Undo != nil && s.Undo.Version == 2 }, func(s contract.Snapshot) {
		require.Len(t, s.Undo.Waves[0], 2)
		w.signal(contract.SignalResolveStep, contract.Decision{By: "alice", Step: "a", As: contract.ResolveAccepted})
	})
	w.sees(func(s contract.Snapshot) bool { return len(s.Decisions) == 2 }, func(s contract.Snapshot) {
		require.Contains(t, s.Decisions[1].Why, "decide about that")
		w.signal(contract.SignalApproveCompensation, contract.Decision{By: "alice", Digest: s.Undo.Digest})
	})
	receipt := w.transact(t)
	require.Equal(t, contract.TxCompensated, receipt.State)
	require.Empty(t, w.existing())
}

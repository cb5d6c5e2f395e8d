// Package workflows holds Transaction, the durable saga.
//
// A transaction executes the steps of a plan in the order of their dependencies. Every call is made once. When it is
// not known what became of a call, the step is in doubt and its owner is asked before anything is sent again. When a
// step has provably failed, nothing new is started, what is in flight settles, and a human is asked whether the effects
// that exist shall be undone. They are undone in reverse order of dependency, and each is verified absent.
//
// The states, and which may follow which, are the tables of package contract; every change of state passes through
// [transaction.become] or [transaction.enter]. The files follow a transaction's way:
//
//	transaction.go   its life, from start to receipt
//	forward.go       which step may run when
//	execute.go       one step: dispatch, and what each outcome leads to
//	doubt.go         asking the owner: when presence and absence count, and whose the thing is
//	rollback.go      carrying out what was approved: which compensation may run when
//	undoplan.go      what a human is asked to approve
//	undo.go          one compensation: look, compensate, look
//	sweep.go         the last look before a transaction closes
//	decisions.go     what humans say, judged on arrival
//	calls.go         calls of activities: budgets, deadlines, and doubt from Temporal's own errors
//	scope.go         what templates may refer to
//	view.go          snapshot, receipt, search attributes, current details
//	wait.go          waiting, and leaving the run
//	carry.go         continuing as a new run
//
// Everything in this package is deterministic. It decides; activities only report what they saw, as data.
package workflows

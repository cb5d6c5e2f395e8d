// Package sdk is the Go client of MCPx: it starts transactions, watches and lists them, carries what humans decide to
// them, and reads their receipts. The command line, the console and the bridge for agents are built on it.
//
// Everything is kept by Temporal, so a Client holds no state that matters: any number of them, in any number of
// processes, see the same transactions.
//
// # Identity
//
// The workflow ID of a transaction is its intent: the plan with the fingerprint of its logical keys, or with a key of
// the caller's own. [Client.Start] looks first, and starts a run only where no earlier run answers for the intent:
//
//   - A running one is attached to.
//   - One that ended COMMITTED, RETAINED, PARTIALLY_COMPENSATED, COMPENSATED or REJECTED is replayed from its receipt,
//     for the plan's ttl from its end. Nothing is executed and nothing is written.
//   - One that FAILED, that could not start, or whose ttl has passed, gets a follow-up run; so does any closed one when
//     the caller asks for it to be done again. However many callers do so at once, one run comes of it.
//   - One that was ended from outside (terminated, timed out) is refused with ErrEffectsMayRemain.
//   - One that is running or would be replayed, but was started with other inputs, another plan, other contracts or
//     other servers, is refused with a [ConflictError].
//
// # Files
//
//	client.go      the client, and how its calls are repeated
//	dial.go        finding Temporal, and saying what is wrong where it is not found
//	errors.go      what callers branch on
//	record.go      reading what a run was started with and how it ended
//	start.go       starting, attaching, replaying
//	identity.go    comparing two starts of one intent
//	snapshot.go    a transaction as it stands, with a worker's help or without
//	watch.go       following a transaction: one poll for all who watch it
//	decide.go      what humans say: by update, else by signal
//	list.go        listing transactions
//	pending.go     what a transaction waits for, and whether anybody is there to do it
//	attributes.go  search attributes
package sdk

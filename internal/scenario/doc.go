// Package scenario tests what only a real Temporal server and real processes can show: killed workers and applications,
// resets, cancellations, starts by hand. It has no code of its own beside tests.
package scenario

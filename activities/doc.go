// Package activities holds every side effect of a transaction: Execute, Inspect and Compensate, and the control
// activities Resolve and Generation. Activities decide nothing about the saga. They report what they saw as data, an
// Outcome or a Look; Temporal errors are left for what Temporal itself has to say.
package activities

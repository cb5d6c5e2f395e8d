// Package contract is the vocabulary of MCPx: what a consequential tool promises (Tool), what should happen
// (Definition), how it is going (Snapshot), what was seen (Outcome, Look, Evidence), what a human is asked to
// allow (UndoPlan) and what remains as proof (Receipt), together with the names under which all of it is known to
// Temporal.
//
// It holds types, and the filling of templates. It does no I/O, knows neither Temporal nor YAML nor CEL, and every
// function in it is deterministic, so that workflow code may use all of it.
package contract

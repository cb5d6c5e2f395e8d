// Package starter holds the commands of mcpx that people type: they run the parts (dev, worker), look at plans
// and transactions, and decide. Everything they do goes through package sdk; programs use that directly.
//
// Each command is a file with a function of type Command. Results go to standard output, as text for people or, with
// --json, as JSON for programs; messages and progress go to standard error. The exit codes are those of package view.
package starter

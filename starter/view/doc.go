// Package view writes for people what MCPx knows: transactions, their steps and evidence, undo plans, dry runs. It only
// looks; what to show is given. Every text that comes from elsewhere is made harmless before it is written.
package view

// Package bench measures what a transaction costs beside a bare Temporal workflow that makes the same calls. It has no
// code of its own beside benchmarks; `make bench` runs them. Figures are ratios of medians measured side by side in one
// run.
package bench

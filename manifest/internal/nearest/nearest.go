// Package nearest finds what somebody who misspelled a name meant.
package nearest

import (
	"fmt"
	"strings"
)

// Name returns the known name that is nearest to a misspelled one, or "" if none is near enough to be meant. Case and the
// difference between hyphen and underscore count little.
func Name(name string, known []string) string {
	best, bestDistance := "", 0
	for _, candidate := range known {
		d := 2 * distance(fold(name), fold(candidate))
		if d > max(len([]rune(name)), len([]rune(candidate))) {
			continue // more than half of it is wrong
		}
		if d == 0 && name != candidate {
			d = 1
		}
		if limit := 2 * allowed(len([]rune(candidate))); d <= limit && (best == "" || d < bestDistance) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Hint is `did you mean "name"?` for the nearest known name, or "" if there is none.
func Hint(name string, known []string) string {
	if best := Name(name, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// allowed is how many letters of a name may be wrong.
func allowed(length int) int {
	switch {
	case length <= 2:
		return 1
	case length <= 5:
		return 2
	default:
		return length/4 + 1
	}
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// maxLength bounds the work: longer names are not compared letter by letter.
const maxLength = 100

// distance counts the letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > maxLength || len(y) > maxLength {
		if a == b {
			return 0
		}
		return maxLength
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

package starter

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearFlags are the flags of a command whose names are hardly different from the given one.
func nearFlags(cmd *cobra.Command, name string) (near []string) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && distance(flag.Name, name) <= 2 {
			near = append(near, "--"+flag.Name)
		}
	})
	return near
}

// nearNames are those of the names that are hardly different from the given one.
func nearNames(name string, names []string) (near []string) {
	for _, candidate := range names {
		if distance(candidate, name) <= 2 {
			near = append(near, candidate)
		}
	}
	return near
}

// distance is the number of characters to insert, remove or replace to make one word of the other (Levenshtein).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}

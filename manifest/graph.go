package manifest

import (
	"slices"
	"strings"
)

// graph is the order of the steps of a plan: which waits for which.
type graph struct {
	ids   []string // as they stand in the plan
	needs map[string][]string
}

func graphOf(steps []planStep) graph {
	g := graph{needs: make(map[string][]string, len(steps))}
	for _, s := range steps {
		g.ids = append(g.ids, s.ID)
		g.needs[s.ID] = s.Needs
	}
	return g
}

// cycle returns a way that leads back to its first step, in the direction of the work: a → b → a means that b waits for
// a, and a for b. It is nil if there is none.
func (g graph) cycle() []string {
	const (
		open = 1
		done = 2
	)
	state := map[string]int{}
	var path []string
	var visit func(id string) []string
	visit = func(id string) []string {
		state[id] = open
		path = append(path, id)
		for _, need := range g.needs[id] {
			switch state[need] {
			case open:
				way := append(slices.Clone(path[slices.Index(path, need):]), need)
				slices.Reverse(way)
				return way
			case done:
			default:
				if way := visit(need); way != nil {
					return way
				}
			}
		}
		path = path[:len(path)-1]
		state[id] = done
		return nil
	}
	for _, id := range g.ids {
		if state[id] == 0 {
			if way := visit(id); way != nil {
				return way
			}
		}
	}
	return nil
}

// order lists the steps so that each comes after those it waits for, and otherwise as they stand in the plan. There
// must be no cycle.
func (g graph) order() []string {
	waiting := make(map[string]int, len(g.ids))
	then := map[string][]string{}
	for _, id := range g.ids {
		waiting[id] = len(g.needs[id])
		for _, need := range g.needs[id] {
			then[need] = append(then[need], id)
		}
	}
	at := make(map[string]int, len(g.ids))
	var ready []int
	for i, id := range g.ids {
		at[id] = i
		if waiting[id] == 0 {
			ready = append(ready, i)
		}
	}
	order := make([]string, 0, len(g.ids))
	for len(ready) > 0 {
		id := g.ids[ready[0]]
		ready = ready[1:]
		order = append(order, id)
		for _, next := range then[id] {
			if waiting[next]--; waiting[next] == 0 {
				i, _ := slices.BinarySearch(ready, at[next])
				ready = slices.Insert(ready, i, at[next])
			}
		}
	}
	return order
}

// before is every step that must be done before id, directly or not.
func (g graph) before(id string) map[string]bool {
	found := map[string]bool{}
	open := slices.Clone(g.needs[id])
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if !found[next] {
			found[next] = true
			open = append(open, g.needs[next]...)
		}
	}
	return found
}

func arrows(way []string) string { return strings.Join(way, " → ") }

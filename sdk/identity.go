package sdk

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// Names of what may differ between two starts of one intent.
const (
	memberDefinition  = "definition"
	memberFingerprint = "fingerprint"
	memberPlan        = "plan"
	inputPrefix       = "input."
)

// differences lists in what a later start differs from the earlier one that has its ID. Generations do not count: they
// number deliberate repetitions of the same.
func differences(earlier, later contract.Start) []Difference {
	var found []Difference
	differ := func(member, had, wants string) {
		if had != wants {
			found = append(found, Difference{Member: member, Had: had, Wants: wants})
		}
	}
	differ(memberPlan, earlier.Plan, later.Plan)
	if earlier.Identity == nil {
		return append(found, inputDifferences(earlier.Input, later.Input)...)
	}
	had, wants := *earlier.Identity, *later.Identity
	differ(memberDefinition, had.Definition, wants.Definition)
	names := map[string]bool{}
	for _, inputs := range []map[string]string{had.Inputs, wants.Inputs} {
		for name := range inputs {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		differ(inputPrefix+name, had.Inputs[name], wants.Inputs[name])
	}
	if len(found) == 0 {
		differ(memberFingerprint, had.Fingerprint, wants.Fingerprint)
	}
	return found
}

// inputDifferences compares two inputs themselves: a start made by hand carries no digests. What cannot be compared
// counts as different.
func inputDifferences(earlier, later json.RawMessage) []Difference {
	had, err := memberDigests(earlier)
	if err != nil {
		return []Difference{{Member: "input", Had: "unreadable", Wants: "readable"}}
	}
	wants, err := memberDigests(later)
	if err != nil {
		return []Difference{{Member: "input", Had: "readable", Wants: "unreadable"}}
	}
	return differences(
		contract.Start{Identity: &contract.Identity{Inputs: had}},
		contract.Start{Identity: &contract.Identity{Inputs: wants}})
}

// memberDigests digests each member of an input.
func memberDigests(input json.RawMessage) (map[string]string, error) {
	digests := map[string]string{}
	if len(input) == 0 {
		return digests, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, err
	}
	for name, value := range members {
		digest, err := canon.Digest(value)
		if err != nil {
			return nil, err
		}
		digests[name] = digest
	}
	return digests, nil
}

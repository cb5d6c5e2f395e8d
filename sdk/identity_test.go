package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
)

func TestDifferencesAreExactlyTheMembersThatDiffer(t *testing.T) {
	digests := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"1", "2"}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		had := contract.Start{Plan: "p", Identity: &contract.Identity{
			Fingerprint: "f", Definition: "d", Inputs: digests.Draw(t, "had"), Generation: rapid.IntRange(0, 3).Draw(t, "generation"),
		}}
		wants := contract.Start{Plan: "p", Identity: &contract.Identity{Fingerprint: "f", Definition: "d", Inputs: digests.Draw(t, "wants")}}
		require.Empty(t, differences(had, had))
		found := map[string]Difference{}
		for _, d := range differences(had, wants) {
			found[strings.TrimPrefix(d.Member, inputPrefix)] = d
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			before, after := had.Identity.Inputs[name], wants.Identity.Inputs[name]
			d, differs := found[name]
			require.Equal(t, before != after, differs, name)
			if differs {
				require.Equal(t, before, d.Had)
				require.Equal(t, after, d.Wants)
			}
		}
	})
}

func TestOtherPlanDefinitionOrKeyDiffers(t *testing.T) {
	start := func(plan, definition, fingerprint string) contract.Start {
		return contract.Start{Plan: plan, Identity: &contract.Identity{Definition: definition, Fingerprint: fingerprint}}
	}
	first := start("p", "d", "f")
	for member, other := range map[string]contract.Start{
		memberPlan: start("q", "d", "f"), memberDefinition: start("p", "e", "f"), memberFingerprint: start("p", "d", "g"),
	} {
		found := differences(first, other)
		require.Len(t, found, 1)
		require.Equal(t, member, found[0].Member)
		err := &ConflictError{ID: "p/k", State: contract.TxRunning, Differences: found}
		require.ErrorIs(t, err, ErrConflict)
		require.NotContains(t, err.Error(), "--again", "what runs cannot be done again")
	}
}

func TestInputsThatCannotBeComparedDiffer(t *testing.T) {
	good := contract.Start{Plan: "p", Input: json.RawMessage(`{"a": 1}`), Identity: &contract.Identity{}}
	for _, input := range []string{`"text"`, `[1]`, `{"a": {"b": 1, "b": 2}}`} {
		byHand := contract.Start{Plan: "p", Input: json.RawMessage(input)}
		require.NotEmpty(t, differences(byHand, good), input)
	}
	require.NotEmpty(t, differences(contract.Start{Plan: "p"}, good))
	require.Empty(t, differences(contract.Start{Plan: "p"}, contract.Start{Plan: "p", Input: json.RawMessage(`{}`), Identity: &contract.Identity{}}))
}

func TestSummaryShowsPlainValuesThatCount(t *testing.T) {
	l := launch{StartRequest: StartRequest{Plan: "provision"}, start: contract.Start{Identity: &contract.Identity{
		Inputs: map[string]string{"workspace": "1", "size": "2", "token": "3", "on": "4", "nothing": "5", "list": "6"},
	}}}
	input := `{"workspace": "acme  corp\n", "size": 10000000000000000001, "token": {"$sealed": "x"}, "on": true, "nothing": null,
		"list": [1], "note": "does not count"}`
	require.Equal(t, "provision: on=true, size=10000000000000000001, workspace=acme corp", l.summary(json.RawMessage(input)))
	require.Equal(t, "provision", l.summary(json.RawMessage(`{"token": {"$sealed": "x"}}`)))
	require.Equal(t, "provision", l.summary(json.RawMessage(`"?"`)))
	l.Key = "order-7"
	require.Equal(t, "provision: order-7", l.summary(json.RawMessage(input)))
}

func TestShortenedTextIsValidAndShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		short := shorten(text, limit)
		require.LessOrEqual(t, len(short), limit)
		require.True(t, utf8.ValidString(short))
		require.Equal(t, short, shorten(short, limit))
	})
}

func TestFollowUpIDBelongsToThePredecessorAlone(t *testing.T) {
	id, run := "p/k", "run"
	require.Equal(t, followUpID("p/k", "run"), followUpID(id, run))
	require.NotEqual(t, followUpID("p/k", "run"), followUpID("p/k", "run2"))
	require.NotEqual(t, followUpID("p/k", "run"), followUpID("p/kr", "un"))
}

func TestReplayEndsWithTheTTL(t *testing.T) {
	ended := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		ttl, after time.Duration
		want       bool
	}{
		{time.Hour, 0, false},
		{time.Hour, time.Hour - 1, false},
		{time.Hour, time.Hour, true},
		{0, 1000 * time.Hour, false},
	} {
		l := launch{definition: contract.Definition{TTL: contract.Duration(test.ttl)}}
		require.Equal(t, test.want, l.expired(ended, ended.Add(test.after)), fmt.Sprint(test))
	}
}

package sdk

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/visibility"
)

// populate starts one transaction for each way to be, and gives their IDs by state.
func populate(t *testing.T, c *Client) (r StartRequest, ids map[contract.TxState][]string) {
	t.Helper()
	r = ask(t, "")
	host(t, c, r.TaskQueue)
	ids = map[contract.TxState][]string{}
	add := func(state contract.TxState, key, members string) string {
		r := r
		r.Key, r.Input = key, json.RawMessage(`{"key": "x"`+members+`}`)
		id := mustStart(t, c, r).ID
		ids[state] = append(ids[state], id)
		return id
	}
	for _, state := range contract.TxStates() {
		if state != contract.TxTerminated {
			add(state, "as-"+string(state), fmt.Sprintf(`, "state": %q`, state))
		}
	}
	add(contract.TxRejected, "invalid", `, "invalid": true`)
	add(contract.TxTerminated, "broken", `, "break": true`)
	terminated := add(contract.TxTerminated, "terminated", `, "state": "AWAITING_RESOLUTION"`)
	requireState(t, c, terminated, contract.TxAwaitingResolution)
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), terminated, "", "stuck"))
	return r, ids
}

func idsOf(listing Listing) []string {
	var ids []string
	for _, s := range listing.Transactions {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestListFindsTransactionsByStatePlanAndTool(t *testing.T) {
	for _, namespace := range []string{contract.Namespace, bare} {
		t.Run(namespace, func(t *testing.T) {
			ensure(t, namespace)
			c, _ := connect(t, namespace)
			r, ids := populate(t, c)
			var all []string
			for _, state := range contract.TxStates() {
				want := slices.Sorted(slices.Values(ids[state]))
				all = append(all, want...)
				for _, tool := range []string{"", "routing/create_route"} {
					var listing Listing
					require.Eventually(t, func() bool { // the index lags behind
						var err error
						listing, err = c.List(t.Context(), ListFilter{State: state, Plan: r.Plan, Tool: tool})
						require.NoError(t, err)
						return slices.Equal(want, idsOf(listing))
					}, patience, tick, "%s %s", state, tool)
					for _, s := range listing.Transactions {
						require.Equal(t, r.Plan, s.Plan)
						require.Equal(t, state, s.State)
						require.Equal(t, []string{"routing/create_route"}, s.Tools)
						require.NotEmpty(t, s.Run)
						require.False(t, s.Started.IsZero())
						require.Equal(t, state.Closed(), !s.Closed.IsZero())
					}
					require.Equal(t, namespace == bare, listing.Note != "")
				}
			}
			listing, err := c.List(t.Context(), ListFilter{Plan: r.Plan, Limit: maxLimit})
			require.NoError(t, err)
			require.ElementsMatch(t, all, idsOf(listing))
			for _, f := range []ListFilter{{Plan: r.Plan + "-other"}, {Plan: r.Plan, Tool: "routing/delete_route"}} {
				listing, err := c.List(t.Context(), f)
				require.NoError(t, err)
				require.Empty(t, listing.Transactions)
			}
		})
	}
}

// ensure makes a namespace that has no search attributes.
func ensure(t *testing.T, namespace string) {
	t.Helper()
	c, _ := connect(t, contract.Namespace)
	require.NoError(t, devserver.EnsureNamespace(t.Context(), c.Temporal(), namespace, 0))
}

func TestPagesOfAListHoldEverythingOnce(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	var want []string
	for i := range 7 {
		r.Key = fmt.Sprint(i)
		want = append(want, mustStart(t, c, r).ID)
	}
	require.Eventually(t, func() bool {
		listing, err := c.List(t.Context(), ListFilter{Plan: r.Plan})
		return err == nil && len(listing.Transactions) == len(want)
	}, patience, tick)
	var got []string
	f := ListFilter{Plan: r.Plan, Limit: 3}
	for pages := 0; ; pages++ {
		require.Less(t, pages, 4)
		listing, err := c.List(t.Context(), f)
		require.NoError(t, err)
		require.LessOrEqual(t, len(listing.Transactions), 3)
		got = append(got, idsOf(listing)...)
		if f.Page = listing.Next; len(f.Page) == 0 {
			break
		}
	}
	require.ElementsMatch(t, want, got)
}

func TestEachGenerationIsListed(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, `"state": "FAILED"`)
	host(t, c, r.TaskQueue)
	first, second := mustEnd(t, c, r), mustEnd(t, c, r)
	require.Eventually(t, func() bool {
		listing, err := c.List(t.Context(), ListFilter{Plan: r.Plan, State: "failed"})
		require.NoError(t, err)
		return len(listing.Transactions) == 2 &&
			listing.Transactions[0].Run == second.Run && listing.Transactions[1].Run == first.Run
	}, patience, tick)
}

func TestNamesWithQuotesFindNothingElse(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	mustStart(t, c, r)
	odd := r
	odd.Plan = `it's "a" \ plan' OR WorkflowId != 'x`
	odd.Manifest = thePlan(odd.Plan)
	id := mustStart(t, c, odd).ID
	require.Eventually(t, func() bool {
		listing, err := c.List(t.Context(), ListFilter{Plan: odd.Plan})
		require.NoError(t, err)
		return slices.Equal([]string{id}, idsOf(listing))
	}, patience, tick)
}

func TestStartWorksWhereSearchAttributesAreNotRegistered(t *testing.T) {
	ensure(t, bare)
	refuse := func(method string, _ any) error {
		if method == "ListSearchAttributes" {
			return status.Error(codes.PermissionDenied, "ask somebody else")
		}
		return nil
	}
	for _, test := range []struct {
		name  string
		spoil *func(string, any) error
	}{{"and the server says so", nil}, {"and the server does not say", &refuse}} {
		t.Run(test.name, func(t *testing.T) {
			c, n := connect(t, bare)
			n.spoil.Store(test.spoil)
			r := ask(t, `"state": "FAILED"`)
			host(t, c, r.TaskQueue)
			for range 2 {
				mustEnd(t, c, r)
			}
			require.False(t, c.Indexed(t.Context()))

			// The same holds for a follow-up that is the first to try.
			c, n = connect(t, bare)
			n.spoil.Store(test.spoil)
			mustEnd(t, c, r)
			c, n = connect(t, bare)
			n.spoil.Store(test.spoil)
			listing, err := c.List(t.Context(), ListFilter{State: contract.TxFailed, Plan: r.Plan})
			require.NoError(t, err)
			require.NotEmpty(t, listing.Note)
		})
	}
}

func TestSearchAttributesRegisteredLaterAreFound(t *testing.T) {
	namespace := unique(t)
	ensure(t, namespace)
	c, _ := connect(t, namespace)
	require.False(t, c.Indexed(t.Context()))
	require.NoError(t, devserver.EnsureSearchAttributes(t.Context(), c.Temporal(), namespace, visibility.Attributes))
	require.False(t, c.Indexed(t.Context()), "it is not asked every time")
	c.attributes.checked = time.Now().Add(-attributesRecheck)
	require.True(t, c.Indexed(t.Context()))
	r := ask(t, "")
	id := mustStart(t, c, r).ID
	described, err := c.describe(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, r.Plan, attribute(described.GetWorkflowExecutionInfo().GetSearchAttributes(), contract.SearchPlan))
}

func TestAttributesOfAnotherTypeAreNotUsed(t *testing.T) {
	namespace := unique(t)
	ensure(t, namespace)
	c, _ := connect(t, namespace)
	odd := map[string]enumspb.IndexedValueType{
		contract.SearchState: enumspb.INDEXED_VALUE_TYPE_INT,
		contract.SearchPlan:  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		contract.SearchTools: enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	}
	require.NoError(t, devserver.EnsureSearchAttributes(t.Context(), c.Temporal(), namespace, odd))
	require.False(t, c.Indexed(t.Context()))
	mustStart(t, c, ask(t, ""))
}

func TestStatesAreReadAsPeopleWriteThem(t *testing.T) {
	for word, want := range map[string]contract.TxState{
		"COMMITTED": contract.TxCommitted, "committed": contract.TxCommitted, " Awaiting-Resolution ": contract.TxAwaitingResolution,
		"awaiting start approval": contract.TxAwaitingStartApproval,
	} {
		state, err := ParseState(word)
		require.NoError(t, err)
		require.Equal(t, want, state)
	}
	for word, hint := range map[string]string{
		"COMITTED":  "did you mean COMMITTED?",
		"complete":  "it is one of",
		"terminate": "did you mean TERMINATED?",
		"runing":    "did you mean RUNNING?",
		"x":         "it is one of RUNNING",
		"":          "it is one of",
	} {
		_, err := ParseState(word)
		require.ErrorContains(t, err, hint, word)
	}
	_, err := New(nil, contract.Namespace).List(t.Context(), ListFilter{State: "comitted"})
	require.ErrorContains(t, err, "did you mean COMMITTED?")
}

func TestDistanceIsAMetric(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ABC")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		require.Equal(t, a == b, distance(a, b) == 0)
		require.Equal(t, distance(a, b), distance(b, a))
		require.LessOrEqual(t, distance(a, c), distance(a, b)+distance(b, c))
		require.LessOrEqual(t, distance(a, b), max(len(a), len(b)))
	})
}

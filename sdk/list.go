package sdk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/mcpx-go/mcpx/contract"
)

const (
	defaultLimit = 50
	maxLimit     = 1000
	// lookers is how many transactions are asked for their state at once, where the index does not hold it.
	lookers = 8
	// listWait is how long a worker may take to answer for one transaction of a list.
	listWait = time.Second
)

// ListFilter says which transactions to list. Its zero value lists the newest ones.
type ListFilter struct {
	// State, Plan and Tool ("server/tool") that the transactions must have.
	State contract.TxState
	Plan  string
	Tool  string
	// Limit is how many to list at most: 0 for 50, at most 1,000.
	Limit int
	// Page goes on where an earlier listing ended: its Next.
	Page []byte
}

// Summary is one transaction of a listing.
type Summary struct {
	ID      string           `json:"id"`
	Run     string           `json:"run"`
	Plan    string           `json:"plan"`
	Tools   []string         `json:"tools,omitempty"`
	State   contract.TxState `json:"state"`
	Started time.Time        `json:"started"`
	Closed  time.Time        `json:"closed,omitzero"`
}

// Listing is a page of transactions, newest first.
type Listing struct {
	Transactions []Summary `json:"transactions"`
	// Next is the Page that goes on after this one; nil at the end.
	Next []byte `json:"next,omitempty"`
	// Note says what a reader should know: that states were asked one by one.
	Note string `json:"note,omitempty"`
}

// List lists transactions, each generation of an intent for itself. It reads Temporal's index, which may lag behind by
// a moment: look at the transaction itself before you decide anything.
//
// Where MCPx's search attributes are not registered, it asks each transaction for its state, which is slow, and says
// so in the note.
func (c *Client) List(ctx context.Context, f ListFilter) (Listing, error) {
	if f.State != "" {
		state, err := ParseState(string(f.State))
		if err != nil {
			return Listing{}, err
		}
		f.State = state
	}
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	f.Limit = min(f.Limit, maxLimit)

	var listing Listing
	err := c.indexed(ctx, func(indexed bool) (err error) {
		listing = Listing{Next: f.Page}
		if !indexed {
			listing.Note = fmt.Sprintf("%s, %s and %s are not registered as search attributes in namespace %s: every transaction was asked "+
				"for its state, which is slow", contract.SearchState, contract.SearchPlan, contract.SearchTools, c.namespace)
		}
		query := f.query(indexed)
		for {
			if err := c.listPage(ctx, f, query, indexed, &listing); err != nil {
				return err
			}
			if len(listing.Next) == 0 || len(listing.Transactions) >= f.Limit {
				return nil
			}
		}
	})
	if err != nil {
		return Listing{}, c.explain("", fmt.Errorf("list transactions: %w", err))
	}
	return listing, nil
}

// listPage adds one page of the index. It asks for no more than is wanted, so that the next page begins where this
// listing ends.
func (c *Client) listPage(ctx context.Context, f ListFilter, query string, indexed bool, listing *Listing) error {
	page, err := call(ctx, func(ctx context.Context) (*workflowservice.ListWorkflowExecutionsResponse, error) {
		return c.service().ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.namespace, Query: query, NextPageToken: listing.Next,
			PageSize: int32(f.Limit - len(listing.Transactions)),
		})
	})
	if err != nil {
		return err
	}
	rows := make([]*Summary, len(page.GetExecutions()))
	looks, ctx := errgroup.WithContext(ctx)
	looks.SetLimit(lookers)
	for i, info := range page.GetExecutions() {
		looks.Go(func() (err error) {
			rows[i], err = c.summary(ctx, info, indexed)
			return err
		})
	}
	if err := looks.Wait(); err != nil {
		return err
	}
	for _, row := range rows {
		if row != nil && f.matches(*row) {
			listing.Transactions = append(listing.Transactions, *row)
		}
	}
	listing.Next = page.GetNextPageToken()
	return nil
}

// summary is one row of the index, with what the index does not hold. It is nil where the row is no transaction of its
// own: a run that a Temporal reset replaced, or one that is gone by now.
func (c *Client) summary(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, indexed bool) (*Summary, error) {
	s := &Summary{
		ID:      info.GetExecution().GetWorkflowId(),
		Run:     info.GetExecution().GetRunId(),
		Plan:    attribute(info.GetSearchAttributes(), contract.SearchPlan),
		Tools:   attributeList(info.GetSearchAttributes(), contract.SearchTools),
		State:   contract.TxState(attribute(info.GetSearchAttributes(), contract.SearchState)),
		Started: info.GetStartTime().AsTime(),
	}
	if info.GetCloseTime() != nil {
		s.Closed = info.GetCloseTime().AsTime()
	}
	known := indexed && s.Plan != ""
	switch status := info.GetStatus(); {
	case isOpen(status):
		known = known && s.State.Known() && !s.State.Closed()
	case status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, status == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		known = known && s.State.Closed()
	default:
		replaced, err := c.replaced(ctx, s.ID, s.Run)
		if err != nil || replaced {
			return nil, ignoreGone(err)
		}
		s.State = contract.TxTerminated
	}
	if !known {
		snapshot, _, err := c.snapshot(ctx, s.ID, s.Run, listWait)
		if err != nil {
			return nil, ignoreGone(err)
		}
		s.State, s.Plan = snapshot.State, snapshot.Plan
		for _, step := range snapshot.Steps {
			if !slices.Contains(s.Tools, step.Tool) {
				s.Tools = append(s.Tools, step.Tool)
			}
		}
	}
	if s.Plan == "" {
		s.Plan = contract.PlanOf(s.ID)
	}
	return s, nil
}

// replaced tells whether a run that was ended from outside lives on in one that a Temporal reset made of it.
func (c *Client) replaced(ctx context.Context, id, run string) (bool, error) {
	described, err := c.describe(ctx, id, "")
	if err != nil {
		return false, err
	}
	newest := described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	if newest == run {
		return false, nil
	}
	chain, err := c.firstRun(ctx, id, newest)
	if err != nil {
		return false, err
	}
	first, err := c.firstRun(ctx, id, run)
	return chain == first, err
}

// ignoreGone drops the error of a transaction that the index still lists and the history store has dropped.
func ignoreGone(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// matches checks a row itself: the query may let more through.
func (f ListFilter) matches(s Summary) bool {
	return (f.State == "" || s.State == f.State) &&
		(f.Plan == "" || s.Plan == f.Plan) &&
		(f.Tool == "" || slices.Contains(s.Tools, f.Tool))
}

// query is the filter in the language of Temporal's index. It may let more through than the filter does: rows that the
// index does not know everything about.
func (f ListFilter) query(indexed bool) string {
	clauses := []string{
		"WorkflowType = " + quote(contract.WorkflowTransaction),
		// The run that it continued as is listed instead.
		"ExecutionStatus != 'ContinuedAsNew'",
	}
	and := func(format string, args ...any) { clauses = append(clauses, fmt.Sprintf(format, args...)) }
	switch {
	case f.State == "":
	case f.State == contract.TxTerminated:
		// A run that failed without a receipt counts, too.
		and("ExecutionStatus IN ('Terminated', 'TimedOut', 'Canceled', 'Failed', 'Completed')")
		if indexed {
			and("(ExecutionStatus NOT IN ('Failed', 'Completed') OR %s)", unsaid())
		}
	case f.State.Closed():
		status := "Failed"
		if f.State.EffectsRemain() {
			status = "Completed"
		}
		and("ExecutionStatus = %s", quote(status))
		if indexed {
			and("(%s = %s OR %s)", contract.SearchState, quote(string(f.State)), unsaid())
		}
	default:
		and("CloseTime IS NULL")
		if indexed {
			and("(%s = %s OR %s IS NULL)", contract.SearchState, quote(string(f.State)), contract.SearchState)
		}
	}
	if indexed && plain(f.Plan) {
		and("(%s = %s OR %s IS NULL)", contract.SearchPlan, quote(f.Plan), contract.SearchPlan)
	}
	if indexed && plain(f.Tool) {
		and("(%s = %s OR %s IS NULL)", contract.SearchTools, quote(f.Tool), contract.SearchTools)
	}
	return strings.Join(clauses, " AND ")
}

// unsaid matches closed runs whose final state the index does not hold, as of one that could not start.
func unsaid() string {
	var final []string
	for _, state := range contract.TxStates() {
		if state.Closed() {
			final = append(final, quote(string(state)))
		}
	}
	return fmt.Sprintf("%s IS NULL OR %s NOT IN (%s)", contract.SearchState, contract.SearchState, strings.Join(final, ", "))
}

// plain tells whether a text can be a value in a query. Stores read quotes and backslashes in different ways: what holds
// one is left to the filter itself.
func plain(s string) bool {
	return s != "" && !strings.ContainsAny(s, "'\"`\\") && strings.IndexFunc(s, unicode.IsControl) < 0
}

// quote writes a plain text for Temporal's query language.
func quote(s string) string { return "'" + s + "'" }

// ParseState reads the name of a state of a transaction, in any case, with hyphens or blanks for the underscores. The
// error of a word that is none names the nearest one.
func ParseState(word string) (contract.TxState, error) {
	name := strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(strings.TrimSpace(word)))
	if state := contract.TxState(name); state.Known() {
		return state, nil
	}
	var names []string
	nearest, best := "", len(name)/3+1
	for _, state := range contract.TxStates() {
		names = append(names, string(state))
		if d := distance(name, string(state)); d < best {
			nearest, best = string(state), d
		}
	}
	if nearest != "" {
		return "", fmt.Errorf("%q is no state of a transaction: did you mean %s?", word, nearest)
	}
	return "", fmt.Errorf("%q is no state of a transaction: it is one of %s", word, strings.Join(names, ", "))
}

// distance is the number of characters to insert, remove or replace to make one text of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

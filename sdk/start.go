package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mcpx-go/mcpx/contract"
)

const (
	// maxRounds bounds how often a start looks again because others started or ended runs meanwhile.
	maxRounds = 20

	// maxLookAge is how old the knowledge may be on which a closed run is followed: see follow.
	maxLookAge = 15 * time.Second

	// maxSummary is the size in bytes of the line that Temporal's lists show for a run, and maxShown that of one value
	// in it.
	maxSummary = 200
	maxShown   = 40

	// markHeader carries a mark of the one call that started a follow-up run: the server gives every caller that asks
	// for the same follow-up the same run, and does not say whose it is.
	markHeader = "mcpx-start"
)

// Planner knows the plans: a manifest does.
type Planner interface {
	// Identity is what a start of the plan with this input is compared with, and the workflow ID of its intent.
	Identity(plan string, input json.RawMessage) (contract.Identity, string, error)
	// IdentityFor is Identity for an intent that the caller has given a key of its own.
	IdentityFor(plan string, input json.RawMessage, key string) (contract.Identity, string, error)
	// Resolve gives the plan with its contracts and servers, and checks the input.
	Resolve(start contract.Start) (contract.Resolved, error)
}

// StartRequest is what shall be done.
type StartRequest struct {
	// Plan of the manifest, and its input: one JSON object. No input is an empty one.
	Plan  string
	Input json.RawMessage
	// Key is the caller's own name for the intent. Without one, the plan's logical keys name it.
	Key string
	// Again does it once more where it was done before. What is still running is attached to all the same, and what
	// was ended from outside is refused all the same.
	Again bool
	// Requester is who asks. Four eyes counts it.
	Requester string

	// Manifest knows the plan. Required.
	Manifest Planner
	// Seal, where it is set, makes of the input what is sent to Temporal. It is called with the workflow ID, right
	// before a run is started.
	Seal func(id string, input json.RawMessage) (json.RawMessage, error)
	// TaskQueue of the workflow, by default contract.TaskQueue.
	TaskQueue string
}

// How a start came to its transaction.
type How string

// The ways.
const (
	// StartedNew: this call started a run.
	StartedNew How = "started"
	// Attached: a run of the same intent was under way.
	Attached How = "attached"
	// Replayed: the intent had been carried out. Nothing was executed, and nothing was written.
	Replayed How = "replayed"
)

// Started is the answer of a start.
type Started struct {
	// ID of the transaction and its current run.
	ID  string `json:"id"`
	Run string `json:"run"`
	How How    `json:"how"`
	// Receipt of a replayed transaction.
	Receipt *contract.Receipt `json:"receipt,omitempty"`
}

// launch is a start with everything that is known before the server is asked.
type launch struct {
	StartRequest
	id         string
	start      contract.Start
	definition contract.Definition
}

// Start starts a transaction, or finds the one that was started for the same intent: see the package's documentation.
// It does not wait for it to end.
//
// Errors to branch on: ErrConflict (a ConflictError), ErrEffectsMayRemain (an EndedError), ErrUnavailable. After an
// error of the connection it is not known whether a run was started; starting again is safe.
func (c *Client) Start(ctx context.Context, r StartRequest) (Started, error) {
	l, err := prepare(r)
	if err != nil {
		return Started{}, err
	}
	for range maxRounds {
		looked := time.Now().Round(0) // by the wall clock: this process may be frozen
		last, err := c.current(ctx, l.id)
		if isNotFound(err) {
			run, taken, err := c.first(ctx, l)
			if err != nil {
				return Started{}, c.explain(l.id, fmt.Errorf("start %s: %w", l.id, err))
			}
			if taken {
				continue
			}
			return Started{ID: l.id, Run: run, How: StartedNew}, nil
		}
		if err != nil {
			return Started{}, c.explain(l.id, fmt.Errorf("look for %s: %w", l.id, err))
		}
		answer, followUp, err := l.judge(last, time.Now())
		if err != nil || !followUp {
			return answer, err
		}
		if time.Now().Round(0).Sub(looked) > maxLookAge {
			continue
		}
		run, taken, err := c.follow(ctx, l, last)
		if err != nil {
			return Started{}, c.explain(l.id, fmt.Errorf("start %s again: %w", l.id, err))
		}
		if !taken {
			return Started{ID: l.id, Run: run, How: StartedNew}, nil
		}
		l.Again = false // somebody did it again just now
	}
	return Started{}, fmt.Errorf("start %s: others keep starting and ending it: try again", l.id)
}

// prepare finds out what the request means.
func prepare(r StartRequest) (launch, error) {
	if r.Manifest == nil {
		return launch{}, fmt.Errorf("start plan %q: %w: pass the manifest that holds the plan", r.Plan, ErrNoManifest)
	}
	l := launch{StartRequest: r, start: contract.Start{Plan: r.Plan, Input: r.Input, Requester: r.Requester}}
	if l.TaskQueue == "" {
		l.TaskQueue = contract.TaskQueue
	}
	if len(l.start.Input) == 0 {
		l.start.Input = json.RawMessage("{}")
	}
	var identity contract.Identity
	var err error
	if r.Key != "" {
		identity, l.id, err = r.Manifest.IdentityFor(r.Plan, l.start.Input, r.Key)
	} else {
		identity, l.id, err = r.Manifest.Identity(r.Plan, l.start.Input)
	}
	if err != nil {
		return launch{}, fmt.Errorf("start plan %q: %w", r.Plan, err)
	}
	l.start.Identity = &identity
	resolved, err := r.Manifest.Resolve(l.start)
	if err != nil {
		return launch{}, fmt.Errorf("start plan %q: %w", r.Plan, err)
	}
	l.definition = resolved.Definition
	return l, nil
}

// judge decides what the newest run of an intent means for a start at the given time: its answer, or that a follow-up
// run is due.
func (l launch) judge(last *record, now time.Time) (answer Started, followUp bool, err error) {
	switch {
	case last.ending == cut:
		return answer, false, &EndedError{ID: l.id, Run: last.run, How: last.how, At: last.at}
	case last.ending == open:
		answer = Started{ID: l.id, Run: last.run, How: Attached}
	case last.ending == invalid, l.Again, last.receipt.State == contract.TxFailed, l.expired(last.at, now):
		return answer, true, nil
	default:
		answer = Started{ID: l.id, Run: last.run, How: Replayed, Receipt: last.receipt}
	}
	if found := differences(last.start, l.start); len(found) > 0 || !last.readable {
		if !last.readable {
			found = []Difference{{Member: "input", Had: "unreadable", Wants: "readable"}}
		}
		return Started{}, false, &ConflictError{ID: l.id, Run: last.run, State: last.state(), Differences: found}
	}
	return answer, false, nil
}

// expired tells whether a transaction that ended at the given time answers for its intent no more. A plan without a
// ttl answers for ever.
func (l launch) expired(ended, now time.Time) bool {
	ttl := l.definition.TTL.Std()
	return ttl > 0 && !now.Before(ended.Add(ttl))
}

// first starts the first run of an intent. taken: there is one by now.
func (c *Client) first(ctx context.Context, l launch) (run string, taken bool, err error) {
	start, err := l.argument(0)
	if err != nil {
		return "", false, err
	}
	options := client.StartWorkflowOptions{
		ID:                                       l.id,
		TaskQueue:                                l.TaskQueue,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		StaticSummary:                            l.summary(start.Input),
	}
	err = c.indexed(ctx, func(indexed bool) error {
		if indexed {
			options.TypedSearchAttributes = searchAttributes(l.definition)
		} else {
			options.TypedSearchAttributes = noSearchAttributes
		}
		started, err := c.temporal.ExecuteWorkflow(ctx, options, contract.WorkflowTransaction, start)
		if err == nil {
			run = started.GetRunID()
		}
		return err
	})
	if alreadyStarted(err) {
		return "", true, nil
	}
	return run, false, err
}

// follow starts the run that follows a closed one: an atomic compare-and-swap, because the server takes all requests
// with the predecessor's request ID for one. taken: another call's run follows it.
//
// The server compares only with the newest run. Should two runs have come and gone since it was read, the policy still
// keeps a failed predecessor from being followed where its successors were not in vain.
func (c *Client) follow(ctx context.Context, l launch, last *record) (run string, taken bool, err error) {
	mark := uuid.NewString()
	request, err := c.request(l, last, mark)
	if err != nil {
		return "", false, err
	}
	request.RequestId = followUpID(l.id, last.run)
	request.WorkflowIdReusePolicy = reusePolicy(last)

	var response *workflowservice.StartWorkflowExecutionResponse
	err = c.indexed(ctx, func(indexed bool) (err error) {
		request.SearchAttributes = nil
		if indexed {
			if request.SearchAttributes, err = searchPayloads(l.definition); err != nil {
				return err
			}
		}
		response, err = call(ctx, func(ctx context.Context) (*workflowservice.StartWorkflowExecutionResponse, error) {
			return c.service().StartWorkflowExecution(ctx, request)
		})
		return err
	})
	if alreadyStarted(err) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	event, err := c.firstEvent(ctx, l.id, response.GetRunId())
	if err != nil {
		return "", false, err
	}
	r := record{id: l.id}
	if err := r.started(event); err != nil {
		return "", false, err
	}
	return response.GetRunId(), r.mark != mark, nil
}

// reusePolicy is the strictest policy that lets a closed run be followed.
func reusePolicy(last *record) enumspb.WorkflowIdReusePolicy {
	if last.receipt.State.EffectsRemain() {
		return enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	return enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
}

// request is the start of a follow-up run, as the service itself takes it.
func (c *Client) request(l launch, last *record, mark string) (*workflowservice.StartWorkflowExecutionRequest, error) {
	generation := 1
	if before := last.start.Identity; before != nil {
		generation = before.Generation + 1
	}
	start, err := l.argument(generation)
	if err != nil {
		return nil, err
	}
	input, err := encode(start)
	if err != nil {
		return nil, err
	}
	summary, err := codec.ToPayload(l.summary(start.Input))
	if err != nil {
		return nil, err
	}
	header, err := codec.ToPayload(mark)
	if err != nil {
		return nil, err
	}
	return &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                c.namespace,
		WorkflowId:               l.id,
		WorkflowType:             &commonpb.WorkflowType{Name: contract.WorkflowTransaction},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: l.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:                    input,
		Identity:                 c.place.identity,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		UserMetadata:             &sdkpb.UserMetadata{Summary: summary},
		Header:                   &commonpb.Header{Fields: map[string]*commonpb.Payload{markHeader: header}},
	}, nil
}

// argument is the workflow's argument: its input is sealed, and it tells which run of the intent it is for.
func (l launch) argument(generation int) (contract.Start, error) {
	start, identity := l.start, *l.start.Identity
	identity.Generation = generation
	start.Identity = &identity
	if l.Seal == nil {
		return start, nil
	}
	sealed, err := l.Seal(l.id, start.Input)
	if err != nil {
		return start, fmt.Errorf("seal the input: %w", err)
	}
	start.Input = sealed
	return start, nil
}

// followUpID is the request ID of the start that follows a run: the same for everybody who wants to follow it.
func followUpID(id, run string) string {
	sum := sha256.Sum256([]byte("mcpx-follow-up\x00" + id + "\x00" + run))
	return hex.EncodeToString(sum[:])
}

func alreadyStarted(err error) bool {
	_, started := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err)
	return started
}

// summary is the transaction in one line for Temporal's lists: the plan, with the caller's key or what the input says
// in short. Of the input, as it is sent, only members that count for the intent are shown, and of those only plain
// values: a sealed one is an object.
func (l launch) summary(input json.RawMessage) string {
	if l.Key != "" {
		return shorten(l.Plan+": "+l.Key, maxSummary)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return shorten(l.Plan, maxSummary)
	}
	var shown []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, counts := l.start.Identity.Inputs[name]; !counts {
			continue
		}
		switch value := members[name]; value[0] {
		case '{', '[', 'n': // an object, a list, null
		case '"':
			var text string
			if json.Unmarshal(value, &text) == nil {
				shown = append(shown, name+"="+shorten(text, maxShown))
			}
		default:
			shown = append(shown, name+"="+shorten(string(value), maxShown))
		}
	}
	if len(shown) == 0 {
		return shorten(l.Plan, maxSummary)
	}
	return shorten(l.Plan+": "+strings.Join(shown, ", "), maxSummary)
}

func shorten(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	s = s[:limit-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

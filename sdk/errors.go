package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"

	"github.com/mcpx-go/mcpx/contract"
)

// What callers branch on. The errors that wrap them say what to do.
var (
	// ErrUnavailable: no Temporal server answers.
	ErrUnavailable = errors.New("no Temporal server answers")
	// ErrNamespaceMissing: the server answers, and does not have the namespace.
	ErrNamespaceMissing = errors.New("the namespace does not exist")
	// ErrNotPermitted: the server refuses the credentials, or what was asked with them.
	ErrNotPermitted = errors.New("not permitted by Temporal")
	// ErrNotFound: no transaction has that ID, or its record has outlived the namespace's retention.
	ErrNotFound = errors.New("no such transaction")
	// ErrNotClosed: the transaction has no receipt yet.
	ErrNotClosed = errors.New("the transaction is not closed")
	// ErrConflict: the same intent was started with something else. It comes as a ConflictError.
	ErrConflict = errors.New("conflict")
	// ErrEffectsMayRemain: a run was ended from outside, and nobody knows what it left in the world. It comes as an
	// EndedError.
	ErrEffectsMayRemain = errors.New("effects may remain")
	// ErrNotAccepted: a decision does not count. It comes as a NotAcceptedError.
	ErrNotAccepted = errors.New("not accepted")
	// ErrNoManifest: a start needs somebody who knows the plan.
	ErrNoManifest = errors.New("no manifest")
)

// ConflictError says that an intent is taken: its ID belongs to a transaction that was started with something else.
// It holds names and digests, no values.
type ConflictError struct {
	// ID and Run of the transaction that has the intent, and State as far as it is known without asking a worker.
	ID, Run string
	State   contract.TxState
	// Differences lists what differs.
	Differences []Difference
}

// Difference is one thing in which two starts of one intent differ.
type Difference struct {
	// Member is "definition" (the plan with its contracts and servers), "plan", "fingerprint", or a member of the
	// input, as "input.size".
	Member string `json:"member"`
	// Had and Wants are the digests of the earlier and the later start; "" where the member is missing.
	Had   string `json:"had,omitempty"`
	Wants string `json:"wants,omitempty"`
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "conflict: %s is %s and was started with something else:", e.ID, e.State)
	for i, d := range e.Differences {
		if i > 0 {
			b.WriteByte(',')
		}
		switch name := strings.TrimPrefix(d.Member, inputPrefix); {
		case d.Member == memberDefinition:
			b.WriteString(" another version of the plan, its contracts or its servers")
		case d.Member == memberFingerprint:
			b.WriteString(" another key")
		case d.Had == "":
			fmt.Fprintf(&b, " without %s", name)
		case d.Wants == "":
			fmt.Fprintf(&b, " with %s, which is missing now", name)
		default:
			fmt.Fprintf(&b, " another %s", name)
		}
	}
	b.WriteString(". Start it as it was, or give it a key of its own (--id KEY)")
	if e.State.Closed() {
		b.WriteString(", or say that it shall be done again (--again)")
	}
	return b.String()
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// EndedError says that a run was ended from outside before it reached a final state, so that its effects are unknown.
type EndedError struct {
	ID, Run string
	// How it ended, as "terminated by alice: stuck", and when.
	How string
	At  time.Time
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("%s was ended from outside (%s): effects of it may remain in the world, and nothing is started again "+
		"before its owners were asked. See how far it came with `mcpx status %s`; "+
		"`temporal workflow reset --workflow-id %s --type LastWorkflowTask` takes it over, asks every owner and repeats nothing", e.ID, e.How, e.ID, e.ID)
}

// Is makes errors.Is(err, ErrEffectsMayRemain) true.
func (e *EndedError) Is(target error) bool { return target == ErrEffectsMayRemain }

// NotAcceptedError says why a decision does not count.
type NotAcceptedError struct {
	ID, Signal string
	Why        string
}

func (e *NotAcceptedError) Error() string {
	return fmt.Sprintf("%s of %s was not accepted: %s", e.Signal, e.ID, e.Why)
}

// Is makes errors.Is(err, ErrNotAccepted) true.
func (e *NotAcceptedError) Is(target error) bool { return target == ErrNotAccepted }

func code(err error) codes.Code { return serviceerror.ToStatus(err).Code() }

// isPassing tells whether the same call may succeed a moment later.
func isPassing(err error) bool {
	return slices.Contains([]codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded}, code(err))
}

func isNotFound(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	return gone
}

// explain makes of an error of Temporal one that says what to do about it. Errors that say so already stay as they are.
func (c *Client) explain(id string, err error) error {
	var kind error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrUnavailable), errors.Is(err, ErrNotPermitted),
		errors.Is(err, ErrNamespaceMissing), errors.Is(err, context.Canceled):
		return err
	case isNamespaceMissing(err):
		return c.place.missing(err)
	case isNotFound(err):
		return fmt.Errorf("%w: %s: check the ID with `mcpx list` (%w)", ErrNotFound, id, err)
	case code(err) == codes.PermissionDenied, code(err) == codes.Unauthenticated:
		kind = ErrNotPermitted
	case code(err) == codes.Unavailable, code(err) == codes.DeadlineExceeded:
		kind = ErrUnavailable
	default:
		return err
	}
	return c.place.wrap(kind, err)
}

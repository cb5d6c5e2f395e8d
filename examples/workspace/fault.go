package workspace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// FaultKind names a way in which a call can go wrong. "Commit" means the
// tool's whole effect: for a tool that only reads, the read.
type FaultKind string

// The faults that every tool knows.
const (
	// LoseAck commits, then closes the connection without an answer.
	LoseAck FaultKind = "lose_ack"
	// Hang commits, then never answers. The connection stays open until the
	// client leaves, the application is reset or stops.
	Hang FaultKind = "hang"
	// Reject answers an error with code REJECTED and commits nothing.
	Reject FaultKind = "reject"
	// CrashBefore kills the process before the commit.
	CrashBefore FaultKind = "crash_before"
	// CrashAfter commits durably, then kills the process.
	CrashAfter FaultKind = "crash_after"
	// LateCommit closes the connection without an answer at once, and commits
	// MS milliseconds later. A reset or a stop before that abandons the commit.
	LateCommit FaultKind = "late_commit"
	// Slow waits MS milliseconds, then commits, then answers. It commits even
	// if the client has left; a reset or a stop during the wait abandons it.
	Slow FaultKind = "slow"
	// WrongReply commits, then answers with the id of another request.
	WrongReply FaultKind = "wrong_reply"
	// ErrorAfter commits, then answers an error result with the text "fetch
	// failed" and no code, as the common MCP server libraries do for any
	// exception.
	ErrorAfter FaultKind = "error_after"
	// RefuseStatus answers HTTP 503 and commits nothing. With MS, the answer
	// carries Retry-After, rounded up to whole seconds.
	RefuseStatus FaultKind = "refuse_status"
	// Garbage commits, then answers the first half of the JSON reply.
	Garbage FaultKind = "garbage"
)

// FaultKinds returns every fault.
func FaultKinds() []FaultKind {
	return []FaultKind{LoseAck, Hang, Reject, CrashBefore, CrashAfter, LateCommit, Slow, WrongReply, ErrorAfter, RefuseStatus, Garbage}
}

// takesMS reports whether MS means something for the fault.
func (k FaultKind) takesMS() bool { return k == LateCommit || k == Slow || k == RefuseStatus }

// maxFaultDelay bounds MS.
const maxFaultDelay = time.Hour

// Fault makes the next calls of one tool fail. Faults live in memory only. A
// fault is used up by calls that reach the tool, whether their arguments are
// valid or not. Several faults of one tool are used in the order in which they
// were armed.
type Fault struct {
	// Tool is the name of one of the application's tools.
	Tool string `json:"tool"`
	// Fault says what goes wrong.
	Fault FaultKind `json:"fault"`
	// Calls is how many calls it strikes; 0 means one.
	Calls int `json:"calls,omitempty"`
	// MS is a delay in milliseconds, for late_commit, slow and refuse_status.
	MS int64 `json:"ms,omitempty"`
}

func (f Fault) delay() time.Duration { return time.Duration(f.MS) * time.Millisecond }

// fieldError says which member of a request is wrong, and what it may be.
type fieldError struct {
	Field   string   `json:"field,omitempty"`
	Message string   `json:"message"`
	Valid   []string `json:"valid,omitempty"`
}

func (e *fieldError) Error() string { return e.Field + ": " + e.Message }

// readFault decodes and checks a fault for the application. Its error is a
// *fieldError.
func (a App) readFault(body io.Reader) (Fault, error) {
	var in struct {
		Tool  string    `json:"tool"`
		Fault FaultKind `json:"fault"`
		Calls *int      `json:"calls"`
		MS    int64     `json:"ms"`
	}
	if err := json.UnmarshalRead(body, &in, json.RejectUnknownMembers(true)); err != nil {
		field := ""
		if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
			field = semantic.JSONPointer.LastToken()
		}
		return Fault{}, &fieldError{
			Field: field, Message: fmt.Sprintf("the body must be one JSON object: %v", err),
			Valid: []string{"tool", "fault", "calls", "ms"},
		}
	}
	calls := 1
	if in.Calls != nil {
		calls = *in.Calls
	}
	switch {
	case !slices.Contains(a.Tools(), in.Tool):
		return Fault{}, &fieldError{Field: "tool", Message: fmt.Sprintf("%s has no tool %q", a.Kind, in.Tool), Valid: a.Tools()}
	case !slices.Contains(FaultKinds(), in.Fault):
		return Fault{}, &fieldError{Field: "fault", Message: fmt.Sprintf("no fault %q", in.Fault), Valid: faultNames(FaultKinds())}
	case calls < 1:
		return Fault{}, &fieldError{Field: "calls", Message: fmt.Sprintf("%d is not a number of calls, give 1 or more", calls)}
	case in.MS < 0 || in.MS > maxFaultDelay.Milliseconds():
		return Fault{}, &fieldError{Field: "ms", Message: fmt.Sprintf("%d is out of range, give 0 to %d milliseconds", in.MS, maxFaultDelay.Milliseconds())}
	case in.MS > 0 && !in.Fault.takesMS():
		takers := slices.DeleteFunc(FaultKinds(), func(k FaultKind) bool { return !k.takesMS() })
		return Fault{}, &fieldError{Field: "ms", Message: fmt.Sprintf("%s takes no ms, only %s do", in.Fault, strings.Join(faultNames(takers), ", "))}
	}
	return Fault{Tool: in.Tool, Fault: in.Fault, Calls: calls, MS: in.MS}, nil
}

func faultNames(kinds []FaultKind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// faults are the armed faults, oldest first.
type faults struct {
	mu    sync.Mutex
	armed []Fault
}

func (f *faults) arm(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, fault)
}

// take uses up one call of the tool's oldest fault.
func (f *faults) take(tool string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.armed, func(fault Fault) bool { return fault.Tool == tool })
	if i < 0 {
		return Fault{}, false
	}
	taken := f.armed[i]
	if f.armed[i].Calls--; f.armed[i].Calls == 0 {
		f.armed = slices.Delete(f.armed, i, i+1)
	}
	return taken, true
}

func (f *faults) list() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Fault{}, f.armed...)
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
}

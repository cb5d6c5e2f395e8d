package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/mcpx-go/mcpx/contract"
)

// record is what the two ends of a run's history say: how it was started, and how it ended.
type record struct {
	id string
	// run that was read; original is the run that its start event was written for, another one only after a Temporal
	// reset. first is the first run of the chain.
	run, original, first string

	// start is the argument of the run, as far as it can be read: whoever starts a workflow by hand can pass anything.
	start    contract.Start
	readable bool
	began    time.Time
	mark     string // see markHeader

	closing
}

// ending is how a run ended.
type ending int

const (
	// open: it has not ended.
	open ending = iota
	// final: in a final state, with a receipt.
	final
	// invalid: it could not start, and has a receipt that says why. Nothing was dispatched.
	invalid
	// cut: ended from outside, without a receipt.
	cut
	// continued as another run, which goes on where this one stopped.
	continued
)

// closing is what the last event of a closed run says.
type closing struct {
	ending  ending
	at      time.Time
	how     string
	receipt *contract.Receipt
	next    string // the run that goes on
}

// current reads the newest run of an ID. The common cases take two reads at once, of whatever run is the newest; where
// they do not prove that they read the same run, both are repeated with the run named.
func (c *Client) current(ctx context.Context, id string) (*record, error) {
	r, err := c.read(ctx, id, "")
	if err != nil || r.receipt != nil && r.receipt.Run == r.original {
		return r, err
	}
	described, err := c.describe(ctx, id, "")
	if err != nil {
		return nil, err
	}
	return c.read(ctx, id, described.GetWorkflowExecutionInfo().GetExecution().GetRunId())
}

// read reads both ends of a run's history.
func (c *Client) read(ctx context.Context, id, run string) (*record, error) {
	r := &record{id: id, run: run}
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() error {
		event, err := c.firstEvent(ctx, id, run)
		if err != nil {
			return err
		}
		return r.started(event)
	})
	reads.Go(func() (err error) {
		r.closing, err = c.closing(ctx, id, run)
		return err
	})
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	if r.run == "" {
		r.run = r.original
	}
	return r, nil
}

// started takes in the start event.
func (r *record) started(event *historypb.HistoryEvent) error {
	attributes := event.GetWorkflowExecutionStartedEventAttributes()
	if name := attributes.GetWorkflowType().GetName(); name != contract.WorkflowTransaction {
		return fmt.Errorf("%w: %s is a workflow of type %q, not a %s", ErrNotFound, r.id, name, contract.WorkflowTransaction)
	}
	r.original, r.first = attributes.GetOriginalExecutionRunId(), attributes.GetFirstExecutionRunId()
	r.began = event.GetEventTime().AsTime()
	r.readable = codec.FromPayloads(attributes.GetInput(), &r.start) == nil
	if mark, ok := attributes.GetHeader().GetFields()[markHeader]; ok {
		_ = codec.FromPayload(mark, &r.mark) // a mark that cannot be read is somebody else's
	}
	return nil
}

// closing reads how a run ended; its ending is open while it runs. It reads the history from its end, which answers at
// once also where there is no closing event to wait for.
func (c *Client) closing(ctx context.Context, id, run string) (closing, error) {
	page, err := call(ctx, func(ctx context.Context) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
		return c.service().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: c.namespace, Execution: execution(id, run), MaximumPageSize: 1,
		})
	})
	if err != nil {
		return closing{}, err
	}
	if len(page.GetHistory().GetEvents()) == 0 {
		return closing{}, fmt.Errorf("the history of %s has no end", id)
	}
	last := slices.MaxFunc(page.GetHistory().GetEvents(), func(a, b *historypb.HistoryEvent) int {
		return cmp.Compare(a.GetEventId(), b.GetEventId())
	})
	return closed(last), nil
}

// firstEvent reads the start event.
func (c *Client) firstEvent(ctx context.Context, id, run string) (*historypb.HistoryEvent, error) {
	events, _, err := c.events(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Execution: execution(id, run), MaximumPageSize: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || events[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return nil, fmt.Errorf("the history of %s does not begin with its start", id)
	}
	return events[0], nil
}

// events reads one page of a history.
func (c *Client) events(ctx context.Context, request *workflowservice.GetWorkflowExecutionHistoryRequest) ([]*historypb.HistoryEvent, []byte, error) {
	request.Namespace, request.SkipArchival = c.namespace, true
	page, err := call(ctx, func(ctx context.Context) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
		return c.service().GetWorkflowExecutionHistory(ctx, request)
	})
	if err != nil {
		return nil, nil, err
	}
	events, err := eventsOf(page)
	return events, page.GetNextPageToken(), err
}

// eventsOf are the events of a page. Servers may be set to send them as they store them.
func eventsOf(page *workflowservice.GetWorkflowExecutionHistoryResponse) ([]*historypb.HistoryEvent, error) {
	events := page.GetHistory().GetEvents()
	for _, blob := range page.GetRawHistory() {
		if blob.GetEncodingType() != enumspb.ENCODING_TYPE_PROTO3 {
			return nil, fmt.Errorf("history in an unknown encoding: %s", blob.GetEncodingType())
		}
		var history historypb.History
		if err := proto.Unmarshal(blob.GetData(), &history); err != nil {
			return nil, fmt.Errorf("history that cannot be read: %w", err)
		}
		events = append(events, history.GetEvents()...)
	}
	return events, nil
}

// closed says how a run ended, from its last event. An event that ends nothing leaves it open.
func closed(event *historypb.HistoryEvent) closing {
	end := closing{ending: cut, at: event.GetEventTime().AsTime()}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		attributes := event.GetWorkflowExecutionCompletedEventAttributes()
		end.next = attributes.GetNewExecutionRunId()
		receipt, err := receiptOf(attributes.GetResult())
		if err != nil {
			end.how = "completed with something that is no receipt: " + err.Error()
			return end
		}
		end.ending, end.receipt = final, receipt
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		attributes := event.GetWorkflowExecutionFailedEventAttributes()
		end.next = attributes.GetNewExecutionRunId()
		failure := attributes.GetFailure()
		receipt, err := receiptOf(failure.GetApplicationFailureInfo().GetDetails())
		switch kind := failure.GetApplicationFailureInfo().GetType(); {
		case err != nil:
			end.how = "failed without a receipt: " + failure.GetMessage()
		case kind == contract.ErrorStart:
			end.ending, end.receipt = invalid, receipt
		default:
			end.ending, end.receipt = final, receipt
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		attributes := event.GetWorkflowExecutionTerminatedEventAttributes()
		end.how = phrase("terminated", attributes.GetIdentity(), attributes.GetReason())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		end.next = event.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId()
		end.how = "it was given a time limit, which has passed"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		end.how = "cancelled"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		end.ending = continued
		end.next = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	default:
		return closing{}
	}
	return end
}

func phrase(what, who, why string) string {
	if who != "" {
		what += " by " + who
	}
	if why != "" {
		what += ": " + why
	}
	return what
}

// receiptOf reads a receipt, and takes nothing else for one.
func receiptOf(payloads *commonpb.Payloads) (*contract.Receipt, error) {
	if len(payloads.GetPayloads()) == 0 {
		return nil, errors.New("nothing")
	}
	var receipt contract.Receipt
	if err := codec.FromPayloads(payloads, &receipt); err != nil {
		return nil, err
	}
	family, _, _ := strings.Cut(contract.ReceiptFormat, "/")
	if !strings.HasPrefix(receipt.Format, family+"/") {
		return nil, fmt.Errorf("its format is %q, not %q", receipt.Format, contract.ReceiptFormat)
	}
	if !receipt.State.Known() || !receipt.State.Closed() {
		return nil, fmt.Errorf("its state %q is no final one", receipt.State)
	}
	return &receipt, nil
}

// input of the start, or an empty object.
func (r *record) input() json.RawMessage {
	if carried := r.start.Carried; carried != nil && len(carried.Resolved.Input) > 0 {
		return carried.Resolved.Input
	}
	if len(r.start.Input) > 0 {
		return r.start.Input
	}
	return json.RawMessage("{}")
}

// state of the transaction as far as its history's ends tell.
func (r *record) state() contract.TxState {
	switch r.ending {
	case final, invalid:
		return r.receipt.State
	case cut:
		return contract.TxTerminated
	default:
		return contract.TxRunning
	}
}

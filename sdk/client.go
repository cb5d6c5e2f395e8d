package sdk

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

const (
	callTimeout = 10 * time.Second // one attempt of one call, and all attempts together
	firstPause  = 50 * time.Millisecond
	maxPause    = 2 * time.Second
)

// Client is a connection to the transactions of one namespace. Its methods may be called from any goroutine.
type Client struct {
	temporal  client.Client
	namespace string
	place     place
	dialled   bool // and so closed by Close

	attributes attributes
	feeds      feeds

	// queryWait and updateWait are how long a worker may take to answer.
	queryWait, updateWait time.Duration
}

// How long a worker may take to answer a query, and to judge a decision.
const (
	defaultQueryWait  = 5 * time.Second
	defaultUpdateWait = 10 * time.Second
)

// New makes a client of a connection to Temporal that the caller has, and keeps: Close does not close it. The
// namespace must be the connection's own.
func New(c client.Client, namespace string) *Client {
	return &Client{
		temporal:   c,
		namespace:  namespace,
		place:      place{namespace: namespace, identity: processIdentity()},
		feeds:      feeds{byID: map[string]*feed{}},
		queryWait:  defaultQueryWait,
		updateWait: defaultUpdateWait,
	}
}

// Temporal is the connection that the client uses.
func (c *Client) Temporal() client.Client { return c.temporal }

// Namespace is the namespace whose transactions the client sees.
func (c *Client) Namespace() string { return c.namespace }

// Close ends every Watch and, where the client was made by Dial, the connection.
func (c *Client) Close() {
	c.feeds.close()
	if c.dialled {
		c.temporal.Close()
	}
}

func (c *Client) service() workflowservice.WorkflowServiceClient { return c.temporal.WorkflowService() }

func execution(id, run string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}
}

// call does one call, and repeats it while its error is a passing one, for callTimeout at most. Only reads may be
// called so, and writes that the server recognises when they are repeated.
func call[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pause := firstPause
	for {
		answer, err := do(ctx)
		if err == nil || !isPassing(err) {
			return answer, err
		}
		if wait(ctx, pause) != nil {
			return answer, err
		}
		pause = min(2*pause, maxPause)
	}
}

// wait sleeps, or returns early with the context's error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describe is what Temporal itself knows of a run, the current one where run is "".
func (c *Client) describe(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return call(ctx, func(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return c.service().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: c.namespace, Execution: execution(id, run),
		})
	})
}

// isOpen tells whether a run of this status has not ended.
func isOpen(status enumspb.WorkflowExecutionStatus) bool {
	return status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
}

// codec writes and reads payloads: plain JSON, so that Temporal's own tools can do the same.
var codec = converter.GetDefaultDataConverter()

func encode(v any) (*commonpb.Payloads, error) {
	payloads, err := codec.ToPayloads(v)
	if err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	return payloads, nil
}

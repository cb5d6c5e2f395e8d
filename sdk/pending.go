package sdk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/mcpx-go/mcpx/contract"
)

// pollerFresh is how long after its last poll a worker is taken to be there. A poll lasts a minute at most.
const pollerFresh = 75 * time.Second

// Pending is what a transaction waits for from Temporal's point of view: calls that were dispatched, and whether
// anybody is there to make them.
type Pending struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// Deciding: the workflow itself waits for a worker to go on with it.
	Deciding bool `json:"deciding,omitempty"`
	// Calls that were dispatched and have not ended.
	Calls []PendingCall `json:"calls,omitempty"`
	// Queues that matter to the transaction: that of its workflow first, then those of its calls.
	Queues []Queue `json:"queues"`
}

// PendingCall is one call that was dispatched and has not ended.
type PendingCall struct {
	// Call is contract.ActivityExecute, ActivityInspect or ActivityCompensate.
	Call string `json:"call"`
	// Queue that it was dispatched to; "" where the server does not tell.
	Queue string    `json:"queue,omitempty"`
	Since time.Time `json:"since"`
	// Begun: a worker has it. Worker is the one that has it, or had it last.
	Begun  bool   `json:"begun"`
	Worker string `json:"worker,omitempty"`
	// Attempt counts from 1; only looks are attempted again. Failure is why the last one failed.
	Attempt int    `json:"attempt"`
	Failure string `json:"failure,omitempty"`
}

// Queue is a task queue, and who polls it.
type Queue struct {
	Name string `json:"name"`
	// Server is the name and identity of the server whose calls are dispatched here; "" for the workflows' own queue.
	Server string `json:"server,omitempty"`
	// Workers that polled it within the last minute or so.
	Workers []string `json:"workers,omitempty"`
	// Waiting: something of the transaction waits there for a worker.
	Waiting bool `json:"waiting,omitempty"`
}

// Missing lists the queues on which something waits and that nobody polls.
func (p Pending) Missing() []Queue {
	var missing []Queue
	for _, q := range p.Queues {
		if q.Waiting && len(q.Workers) == 0 {
			missing = append(missing, q)
		}
	}
	return missing
}

// Why says what is missing in one sentence, or "" where nothing is.
func (q Queue) Why() string {
	switch {
	case !q.Waiting || len(q.Workers) > 0:
		return ""
	case q.Server == "":
		return "no worker for workflows on task queue " + q.Name
	default:
		return fmt.Sprintf("no worker for %s on task queue %s", q.serverName(), q.Name)
	}
}

// serverName is the local name of the server: without its identity.
func (q Queue) serverName() string {
	if i := strings.LastIndexByte(q.Server, '-'); i > 0 {
		return q.Server[:i]
	}
	return q.Server
}

// Pending tells what a transaction waits for, and who is there to do it. A closed one waits for nothing.
func (c *Client) Pending(ctx context.Context, id string) (Pending, error) {
	described, err := c.describe(ctx, id, "")
	if err != nil {
		return Pending{}, c.explain(id, fmt.Errorf("look at %s: %w", id, err))
	}
	info := described.GetWorkflowExecutionInfo()
	p := Pending{ID: id, Run: info.GetExecution().GetRunId()}
	if !isOpen(info.GetStatus()) {
		return p, nil
	}
	task := described.GetPendingWorkflowTask()
	p.Deciding = task != nil
	own := described.GetExecutionConfig().GetTaskQueue().GetName()
	if err := c.addQueue(ctx, &p, own, enumspb.TASK_QUEUE_TYPE_WORKFLOW, task.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED); err != nil {
		return Pending{}, c.explain(id, err)
	}
	for _, activity := range described.GetPendingActivities() {
		call := pendingCall(activity)
		p.Calls = append(p.Calls, call)
		if call.Queue == "" {
			continue
		}
		if err := c.addQueue(ctx, &p, call.Queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY, !call.Begun); err != nil {
			return Pending{}, c.explain(id, err)
		}
	}
	return p, nil
}

func pendingCall(a *workflowpb.PendingActivityInfo) PendingCall {
	return PendingCall{
		Call:    a.GetActivityType().GetName(),
		Queue:   a.GetActivityOptions().GetTaskQueue().GetName(),
		Since:   a.GetScheduledTime().AsTime(),
		Begun:   begun(a),
		Worker:  a.GetLastWorkerIdentity(),
		Attempt: int(a.GetAttempt()),
		Failure: a.GetLastFailure().GetMessage(),
	}
}

// begun tells whether a worker has the activity; one whose cancellation was asked for may be either.
func begun(a *workflowpb.PendingActivityInfo) bool {
	switch a.GetState() {
	case enumspb.PENDING_ACTIVITY_STATE_STARTED:
		return true
	case enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
		return a.GetLastWorkerIdentity() != ""
	default:
		return false
	}
}

// addQueue adds a queue once, and notes whether something waits on it.
func (c *Client) addQueue(ctx context.Context, p *Pending, name string, kind enumspb.TaskQueueType, waiting bool) error {
	q := Queue{Name: name}
	if server, ok := strings.CutPrefix(name, contract.TaskQueue+"/"); ok && kind == enumspb.TASK_QUEUE_TYPE_ACTIVITY {
		q.Server, _, _ = strings.Cut(server, "@")
	}
	for i := range p.Queues {
		if known := &p.Queues[i]; known.Name == q.Name && known.Server == q.Server {
			known.Waiting = known.Waiting || waiting
			return nil
		}
	}
	workers, err := c.pollers(ctx, name, kind)
	if err != nil {
		return fmt.Errorf("look who polls task queue %s: %w", name, err)
	}
	q.Workers, q.Waiting = workers, waiting
	p.Queues = append(p.Queues, q)
	return nil
}

// Pollers lists the workers that have polled a task queue within the last minute or so: Temporal itself still names a dead
// one for some minutes.
func (c *Client) Pollers(ctx context.Context, queue string, kind enumspb.TaskQueueType) ([]string, error) {
	workers, err := c.pollers(ctx, queue, kind)
	if err != nil {
		return nil, c.explain("", fmt.Errorf("look who polls task queue %s: %w", queue, err))
	}
	return workers, nil
}

// pollers lists who has polled a queue lately.
func (c *Client) pollers(ctx context.Context, queue string, kind enumspb.TaskQueueType) ([]string, error) {
	described, err := call(ctx, func(ctx context.Context) (*workflowservice.DescribeTaskQueueResponse, error) {
		return c.service().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace:     c.namespace,
			TaskQueue:     &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			TaskQueueType: kind,
		})
	})
	if err != nil {
		return nil, err
	}
	return alive(described.GetPollers(), time.Now()), nil
}

// alive lists those who may still poll: a worker that has not for longer than a poll lasts is gone.
func alive(pollers []*taskqueuepb.PollerInfo, now time.Time) (workers []string) {
	for _, poller := range pollers {
		if now.Sub(poller.GetLastAccessTime().AsTime()) < pollerFresh {
			workers = append(workers, poller.GetIdentity())
		}
	}
	slices.Sort(workers)
	return slices.Compact(workers)
}

// polled tells whether a worker for workflows seems to be there. Where the server does not say, it is worth a try.
func (c *Client) polled(ctx context.Context, queue string) bool {
	workers, err := c.pollers(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	return err != nil || len(workers) > 0
}

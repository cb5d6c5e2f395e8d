package sdk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mcpx-go/mcpx/contract"
)

func TestAWorkerThatHasStoppedPollingIsNotThere(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	poller := func(who string, ago time.Duration) *taskqueuepb.PollerInfo {
		return &taskqueuepb.PollerInfo{Identity: who, LastAccessTime: timestamppb.New(now.Add(-ago))}
	}
	require.Equal(t, []string{"a", "b"}, alive([]*taskqueuepb.PollerInfo{
		poller("b", time.Second), poller("dead", 2*time.Minute), poller("a", time.Minute), poller("b", 4*time.Minute), poller("b", 0),
	}, now))
	require.Empty(t, alive([]*taskqueuepb.PollerInfo{poller("dead", pollerFresh)}, now))
}

func TestPollersAreThoseOfAQueue(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	r := ask(t, "")
	workers, err := c.Pollers(t.Context(), r.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	require.NoError(t, err)
	require.Empty(t, workers)
	host(t, c, r.TaskQueue)
	require.Eventually(t, func() bool {
		workers, err = c.Pollers(t.Context(), r.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil && len(workers) == 1
	}, patience, tick)
}

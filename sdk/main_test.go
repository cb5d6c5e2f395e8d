package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/internal/visibility"
)

const (
	patience = 30 * time.Second
	tick     = 10 * time.Millisecond

	// bare is a namespace without search attributes.
	bare = "mcpx-bare"
)

// shared is the one Temporal server of these tests.
var shared struct {
	once   sync.Once
	server *devserver.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// server gives the address of the shared server, which has the search attributes in contract.Namespace only.
func server(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	shared.once.Do(func() {
		shared.server, shared.err = devserver.Start(context.Background(), devserver.Options{
			Ephemeral: true, Namespace: contract.Namespace, SearchAttributes: visibility.Attributes,
		})
	})
	require.NoError(t, shared.err)
	return shared.server.Address()
}

// meter counts the calls of a connection by method, and may spoil them.
type meter struct {
	mu    sync.Mutex
	calls map[string]int
	// polls that are under way, and the most there have been at once.
	polls, mostPolls int
	spoil            atomic.Pointer[func(method string, request any) error]
}

func (n *meter) intercept(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := method[strings.LastIndexByte(method, '/')+1:]
	history, ok := request.(*workflowservice.GetWorkflowExecutionHistoryRequest)
	poll := ok && history.GetWaitNewEvent()
	n.mu.Lock()
	n.calls[name]++
	if poll {
		n.polls++
		n.mostPolls = max(n.mostPolls, n.polls)
	}
	n.mu.Unlock()
	defer func() {
		if poll {
			n.mu.Lock()
			n.polls--
			n.mu.Unlock()
		}
	}()
	if spoil := n.spoil.Load(); spoil != nil {
		if err := (*spoil)(name, request); err != nil {
			return err
		}
	}
	return invoke(ctx, method, request, reply, cc, opts...)
}

func (n *meter) total() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	total := map[string]int{}
	for method, calls := range n.calls {
		total[method] = calls
	}
	return total
}

// connect gives a client of the shared server with a connection of its own.
func connect(t *testing.T, namespace string) (*Client, *meter) {
	t.Helper()
	address := server(t)
	n := &meter{calls: map[string]int{}}
	connection, err := client.DialContext(t.Context(), client.Options{
		HostPort: address, Namespace: namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(n.intercept)}},
	})
	require.NoError(t, err)
	c := New(connection, namespace)
	t.Cleanup(func() {
		c.Close()
		connection.Close()
	})
	return c, n
}

// host runs a worker for the scripted transaction on the test's own queue, and gives what stops it.
func host(t *testing.T, c *Client, queue string) (stop func()) {
	t.Helper()
	w := worker.New(c.Temporal(), queue, worker.Options{DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(scripted, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	require.NoError(t, w.Start())
	var once sync.Once
	stop = func() { once.Do(w.Stop) }
	t.Cleanup(stop)
	return stop
}

// plans is a manifest of one plan, keyed by its input's member "key".
type plans struct{ def contract.Definition }

// thePlan is a plan whose transactions do what their input says: see script.
func thePlan(name string) plans {
	return plans{contract.Definition{
		Plan: name, Digest: "digest-1", TTL: contract.Duration(time.Hour),
		Steps: []contract.Step{{ID: "route", Tool: "routing/create_route"}},
	}}
}

func (p plans) Identity(plan string, input json.RawMessage) (contract.Identity, string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return contract.Identity{}, "", err
	}
	var key string
	if err := json.Unmarshal(members["key"], &key); err != nil {
		return contract.Identity{}, "", fmt.Errorf("key: %w", err)
	}
	return p.identify(plan, members, key)
}

func (p plans) IdentityFor(plan string, input json.RawMessage, key string) (contract.Identity, string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return contract.Identity{}, "", err
	}
	return p.identify(plan, members, key)
}

func (p plans) identify(plan string, members map[string]json.RawMessage, key string) (contract.Identity, string, error) {
	fingerprint, err := canon.Fingerprint(canon.Custom, plan, []byte(key))
	identity := contract.Identity{Fingerprint: fingerprint, Definition: p.def.Digest, Inputs: map[string]string{}}
	for name, value := range members {
		if identity.Inputs[name], err = canon.Digest(value); err != nil {
			return contract.Identity{}, "", err
		}
	}
	return identity, contract.PlanWorkflowID(plan, key), err
}

func (p plans) Resolve(start contract.Start) (contract.Resolved, error) {
	if start.Plan != p.def.Plan {
		return contract.Resolved{}, fmt.Errorf("no plan is called %q", start.Plan)
	}
	return contract.Resolved{Definition: p.def, Input: start.Input}, nil
}

// ask is a start of the test's own plan, on the test's own queue.
func ask(t *testing.T, members string) StartRequest {
	t.Helper()
	name := unique(t)
	input := `{"key": "acme"`
	if members != "" {
		input += ", " + members
	}
	return StartRequest{Plan: name, Input: json.RawMessage(input + "}"), Manifest: thePlan(name), TaskQueue: name, Requester: "ops"}
}

var (
	names sync.Map // by test
	tests atomic.Int64
)

// unique is a name that this run of the test has to itself: tests may be repeated on one server.
func unique(t *testing.T) string {
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	found, _ := names.LoadOrStore(t, fmt.Sprintf("%s-%d", name, tests.Add(1)))
	return found.(string)
}

func mustStart(t *testing.T, c *Client, r StartRequest) Started {
	t.Helper()
	started, err := c.Start(t.Context(), r)
	require.NoError(t, err)
	return started
}

// mustEnd starts a transaction and waits for it to be closed.
func mustEnd(t *testing.T, c *Client, r StartRequest) Started {
	t.Helper()
	started := mustStart(t, c, r)
	require.Equal(t, StartedNew, started.How)
	requireClosed(t, c, started.ID)
	return started
}

func requireClosed(t *testing.T, c *Client, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		described, err := c.describe(t.Context(), id, "")
		return err == nil && !isOpen(described.GetWorkflowExecutionInfo().GetStatus())
	}, patience, tick)
}

// requireState waits until the transaction is in a state.
func requireState(t *testing.T, c *Client, id string, state contract.TxState) contract.Snapshot {
	t.Helper()
	var snapshot contract.Snapshot
	require.Eventually(t, func() bool {
		var err error
		snapshot, err = c.Snapshot(t.Context(), id)
		return err == nil && snapshot.State == state
	}, patience, tick)
	return snapshot
}

// runs counts the runs of an ID by their histories' links: Temporal's index may lag behind.
func runs(t *testing.T, c *Client, id string) (open, closed int) {
	t.Helper()
	require.Eventually(t, func() bool {
		page, err := c.service().ListWorkflowExecutions(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.namespace, Query: "WorkflowId = " + quote(id),
		})
		require.NoError(t, err)
		described, err := c.describe(t.Context(), id, "")
		require.NoError(t, err)
		newest := described.GetWorkflowExecutionInfo()
		open, closed = 0, 0
		seen := false
		for _, run := range page.GetExecutions() {
			// Visibility lags: it has to know the newest run, and as it is now.
			seen = seen || run.GetExecution().GetRunId() == newest.GetExecution().GetRunId() && run.GetStatus() == newest.GetStatus()
			if run.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				open++
			} else {
				closed++
			}
		}
		return seen
	}, patience, tick)
	return open, closed
}

func events(t *testing.T, c *Client, id string) int64 {
	t.Helper()
	described, err := c.describe(t.Context(), id, "")
	require.NoError(t, err)
	return described.GetWorkflowExecutionInfo().GetHistoryLength()
}

// unavailable is the error of a connection that has failed for a moment.
var unavailable = status.Error(codes.Unavailable, "connection lost")

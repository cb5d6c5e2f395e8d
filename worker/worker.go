// Package worker hosts workflows and activities on their task queues: the queue "mcpx" for workflows and control
// activities, and one queue for the calls to each server of the manifest.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mcpx-go/mcpx/activities"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/visibility"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/toolclient"
	"github.com/mcpx-go/mcpx/workflows"
)

// Options of a worker.
type Options struct {
	// Client is connected to Namespace.
	Client    client.Client
	Namespace string
	Manifest  *manifest.Manifest
	// Logger gets what the worker and the servers that it runs have to say; nil for slog's default.
	Logger *slog.Logger
	// StopTimeout is how long calls in flight may take to finish when the worker stops; 0 for the longest timeout of
	// the manifest's contracts. What is still running then is in doubt, and will be asked about.
	StopTimeout time.Duration
}

// Worker is a running worker.
type Worker struct {
	pool    *toolclient.Pool
	workers []worker.Worker
	queues  []string
	failed  chan error
}

// Run hosts the manifest's workflows and servers until ctx ends, then lets calls in flight finish.
func Run(ctx context.Context, o Options) error {
	w, err := Start(ctx, o)
	if err != nil {
		return err
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.failed:
		return err
	}
}

// Start starts a worker. It fails where the namespace cannot be reached, is missing, or keeps closed workflows for less
// than the longest ttl of the manifest.
func Start(ctx context.Context, o Options) (*Worker, error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	if err := checkNamespace(ctx, o); err != nil {
		return nil, err
	}
	attributes := searchAttributes(ctx, o.Client, o.Namespace)
	if !attributes {
		logger.Warn("MCPx's search attributes are not registered: lists cannot be filtered by state",
			"namespace", o.Namespace, "attributes", slices.Sorted(maps.Keys(visibility.Attributes)))
	}
	w := &Worker{pool: toolclient.NewPool(toolclient.Options{Logger: logger}), failed: make(chan error, 1)}
	acts := &activities.Activities{
		Manifest: o.Manifest, Pool: w.pool, Worker: identity(), SearchAttributes: attributes,
	}
	options := worker.Options{
		Identity:          identity(),
		WorkerStopTimeout: stopTimeout(o),
		OnFatalError:      w.fail,
	}

	control := worker.New(o.Client, contract.TaskQueue, options)
	control.RegisterWorkflowWithOptions(workflows.Transaction, workflow.RegisterOptions{Name: contract.WorkflowTransaction})
	acts.RegisterControl(control)
	w.add(control, contract.TaskQueue)

	options.DisableWorkflowWorker = true
	for _, name := range slices.Sorted(maps.Keys(o.Manifest.Servers)) {
		server := o.Manifest.Servers[name]
		if server.WebMCP != nil {
			continue // run by a browser, not by this process
		}
		if err := w.pool.Add(server); err != nil {
			return nil, fmt.Errorf("server %s: %w", name, errors.Join(err, w.pool.Close()))
		}
		calls := worker.New(o.Client, server.Ref().Queue(), options)
		acts.RegisterCalls(calls)
		w.add(calls, server.Ref().Queue())
	}
	for i, each := range w.workers {
		if err := each.Start(); err != nil {
			for _, started := range w.workers[:i] {
				started.Stop()
			}
			return nil, fmt.Errorf("task queue %s: %w", w.queues[i], errors.Join(err, w.pool.Close()))
		}
	}
	logger.Info("worker started", "namespace", o.Namespace, "queues", w.queues)
	return w, nil
}

func (w *Worker) add(each worker.Worker, queue string) {
	w.workers = append(w.workers, each)
	w.queues = append(w.queues, queue)
}

func (w *Worker) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// Queues lists the task queues that the worker polls.
func (w *Worker) Queues() []string { return slices.Clone(w.queues) }

// Failed receives the error after which the worker cannot go on.
func (w *Worker) Failed() <-chan error { return w.failed }

// Stop takes no new work, lets calls in flight finish, and ends the servers that the worker runs.
func (w *Worker) Stop() {
	done := make(chan struct{}, len(w.workers))
	for _, each := range w.workers {
		go func() {
			each.Stop()
			done <- struct{}{}
		}()
	}
	for range w.workers {
		<-done
	}
	if err := w.pool.Close(); err != nil {
		slog.Default().Warn("closing the sessions with servers", "error", err)
	}
}

// reporting is how long a call may take to say what it knows after its timeout.
const reporting = 2 * time.Second

// stopTimeout lets every call that was begun come to its end.
func stopTimeout(o Options) time.Duration {
	if o.StopTimeout > 0 {
		return o.StopTimeout
	}
	longest := 15 * time.Second
	for _, tool := range o.Manifest.Tools {
		longest = max(longest, tool.Timeout.Std()+reporting)
		if tool.Inspect != nil {
			longest = max(longest, tool.Inspect.Timeout.Std()+reporting)
		}
		if tool.Compensate != nil {
			longest = max(longest, tool.Compensate.Timeout.Std()+reporting)
		}
	}
	return longest
}

// identity names this process: process id, at-sign, host, as Temporal's SDK does.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return strconv.Itoa(os.Getpid()) + "@" + host
}

// searchAttributes tells whether MCPx's search attributes are registered. Where the question itself is not allowed, they
// count as missing: MCPx works without them, but not with unregistered ones.
func searchAttributes(ctx context.Context, c client.Client, namespace string) bool {
	list, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return false
	}
	return visibility.Registered(list.GetCustomAttributes())
}

// checkNamespace refuses a namespace that forgets closed transactions before their ttl has passed: the same intent could
// then be executed again.
func checkNamespace(ctx context.Context, o Options) error {
	described, err := o.Client.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	if notFound := (*serviceerror.NamespaceNotFound)(nil); errors.As(err, &notFound) {
		return fmt.Errorf("namespace %s does not exist: `mcpx dev` makes it on its own server; elsewhere make it with "+
			"`temporal operator namespace create --retention %s --namespace %s`", o.Namespace, o.Manifest.LongestTTL(), o.Namespace)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	retention := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if longest := o.Manifest.LongestTTL(); retention > 0 && retention < longest {
		return fmt.Errorf("namespace %s keeps closed workflows for %s, but the manifest answers the same intent for %s: "+
			"raise it with `temporal operator namespace update --retention %s --namespace %s`, or shorten the ttl",
			o.Namespace, retention, longest, longest, o.Namespace)
	}
	return nil
}

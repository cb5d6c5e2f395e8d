package starter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/visibility"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
	"github.com/mcpx-go/mcpx/starter/screen"
	"github.com/mcpx-go/mcpx/starter/view"
	"github.com/mcpx-go/mcpx/toolclient"
)

// finding is what one check of the doctor found.
type finding struct {
	Check  string   `json:"check"`
	Health health   `json:"health"`
	What   string   `json:"what"`
	Lint   []string `json:"lint,omitempty"`
}

type health string

// The healths. Only bad ones make the doctor fail.
const (
	healthy health = "ok"
	worth   health = "warning"
	bad     health = "bad"
)

var healthTones = map[health]screen.Tone{healthy: screen.Good, worth: screen.Doubt, bad: screen.Bad}

// serverPatience is how long the doctor waits for one server.
const serverPatience = 10 * time.Second

// Doctor checks whether everything is there that transactions need.
func Doctor(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything is there that transactions need",
		Long: "Checks the manifest and its lint, Temporal, the namespace and its retention, the search attributes, the servers with\n" +
			"the tools that the contracts name, and whether workers poll the task queues. Nothing is changed. Exit code 1 when\n" +
			"something is bad.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *App) doctor(ctx context.Context) error {
	m, findings := a.checkManifest()
	c, found := a.checkTemporal(ctx)
	findings = append(findings, found)
	if c != nil {
		defer c.Close()
		findings = append(findings, checkNamespace(ctx, c, m), checkAttributes(ctx, c))
	}
	if m != nil {
		findings = append(findings, a.checkServers(ctx, m)...)
		if c != nil {
			findings = append(findings, checkQueues(ctx, c, m)...)
		}
	}
	err := a.result(findings, func() string { return doctorText(a.Out, findings) })
	if err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f finding) bool { return f.Health == bad }) {
		return exit(view.ExitFailed)
	}
	return nil
}

func doctorText(s *screen.Screen, findings []finding) string {
	columns := []screen.Column{{Title: "CHECK"}, {Title: "HEALTH"}, {Title: "WHAT", Wrap: true}}
	var rows [][]screen.Cell
	for _, f := range findings {
		rows = append(rows, []screen.Cell{screen.Text(f.Check), {Text: string(f.Health), Tone: healthTones[f.Health]}, screen.Text(f.What)})
		for _, warning := range f.Lint {
			rows = append(rows, []screen.Cell{screen.Text(""), {Text: "lint", Tone: screen.Faint}, screen.Text(warning)})
		}
	}
	return s.Table(columns, rows)
}

func (a *App) checkManifest() (*manifest.Manifest, []finding) {
	m, err := a.manifest()
	if problems, ok := errors.AsType[manifest.Errors](err); ok {
		var found []finding
		for _, problem := range problems {
			found = append(found, finding{Check: "manifest", Health: bad, What: problem.Error()})
		}
		return nil, found
	}
	if err != nil {
		return nil, []finding{{Check: "manifest", Health: bad, What: err.Error()}}
	}
	f := finding{Check: "manifest", Health: healthy, What: fmt.Sprintf("%s: %d plans, %d contracts, %d servers", m.File, len(m.Plans), len(m.Tools), len(m.Servers))}
	for _, warning := range m.Warnings {
		f.Health = worth
		f.Lint = append(f.Lint, warning.String())
	}
	return m, []finding{f}
}

func (a *App) checkTemporal(ctx context.Context) (*sdk.Client, finding) {
	f := finding{Check: "Temporal", Health: bad}
	at, err := a.temporal()
	if err != nil {
		f.What = err.Error()
		return nil, f
	}
	c, err := sdk.Dial(ctx, at.options)
	if err != nil {
		f.What = at.explain(err).Error()
		return nil, f
	}
	f.Health = healthy
	f.What = strings.TrimSpace(fmt.Sprintf("%s answers (%s), namespace %s", at.options.Address, at.how, c.Namespace()))
	return c, f
}

// checkNamespace compares the retention with the longest time for which an outcome is to be remembered.
func checkNamespace(ctx context.Context, c *sdk.Client, m *manifest.Manifest) finding {
	f := finding{Check: "namespace", Health: healthy}
	described, err := c.Temporal().WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.Namespace()})
	if err != nil {
		f.Health, f.What = worth, fmt.Sprintf("%s cannot be looked at: %v", c.Namespace(), err)
		return f
	}
	retention := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	f.What = fmt.Sprintf("%s keeps closed transactions for %s", c.Namespace(), retention)
	if m == nil {
		return f
	}
	longest := m.LongestTTL()
	if retention > 0 && retention < longest {
		f.Health = bad
		f.What += fmt.Sprintf(", but outcomes are to be remembered for %s: `temporal operator namespace update --retention %s --namespace %s`", longest, longest, c.Namespace())
		return f
	}
	f.What += fmt.Sprintf(", which covers the longest ttl (%s)", longest)
	return f
}

func checkAttributes(ctx context.Context, c *sdk.Client) finding {
	f := finding{Check: "search attributes", Health: healthy, What: "registered"}
	list, err := c.Temporal().OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: c.Namespace()})
	if err != nil {
		f.Health, f.What = worth, fmt.Sprintf("cannot be looked at: %v", err)
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(visibility.Attributes)) {
		want := visibility.Attributes[name]
		switch have, ok := list.GetCustomAttributes()[name]; {
		case !ok:
			f.Health = worth
			f.What = fmt.Sprintf("%s is not registered: lists are slow (`temporal operator search-attribute create --name %s --type %s`)", name, name, want)
		case have != want:
			f.Health = bad
			f.What = fmt.Sprintf("%s is a %s and must be a %s: remove it, or use another namespace", name, have, want)
			return f
		}
	}
	return f
}

// checkServers asks every server for its tools, and looks whether those of the contracts are among them.
func (a *App) checkServers(ctx context.Context, m *manifest.Manifest) []finding {
	pool := toolclient.NewPool(toolclient.Options{Logger: a.aside()})
	defer func() { _ = pool.Close() }() // the checks are over
	names := slices.Sorted(maps.Keys(m.Servers))
	found := make([]finding, len(names))
	done := make(chan struct{}, len(names))
	for i, name := range names {
		go func() {
			found[i] = checkServer(ctx, pool, m, m.Servers[name])
			done <- struct{}{}
		}()
	}
	for range names {
		<-done
	}
	return found
}

func checkServer(ctx context.Context, pool *toolclient.Pool, m *manifest.Manifest, server contract.Server) finding {
	f := finding{Check: "server " + server.Name, Health: bad}
	if server.WebMCP != nil {
		f.Health, f.What = worth, "its tools live in a browser, and are not looked at"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	if err := pool.Add(server); err != nil {
		f.What = err.Error()
		return f
	}
	tools, err := pool.Tools(ctx, server.Ref())
	if err != nil {
		f.What = err.Error()
		return f
	}
	var missing []string
	for _, name := range toolsOf(m, server.Name) {
		if !slices.ContainsFunc(tools, func(t toolclient.Tool) bool { return t.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		f.What = fmt.Sprintf("it answers, but has no %s, which the contracts name", strings.Join(missing, ", "))
		return f
	}
	f.Health, f.What = healthy, fmt.Sprintf("answers, with %d tools", len(tools))
	return f
}

// toolsOf are the tools of a server that contracts name: to execute, to inspect, to compensate.
func toolsOf(m *manifest.Manifest, server string) []string {
	var names []string
	for _, tool := range m.Tools {
		if tool.Server == server {
			names = append(names, tool.Name)
		}
		if tool.Inspect != nil && tool.Inspect.Server == server {
			names = append(names, tool.Inspect.Tool)
		}
		if tool.Compensate != nil && tool.Compensate.Server == server {
			names = append(names, tool.Compensate.Tool)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkQueues looks whether workers poll the task queues: that of the workflows, and one for each server.
func checkQueues(ctx context.Context, c *sdk.Client, m *manifest.Manifest) []finding {
	found := []finding{checkQueue(ctx, c, contract.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)}
	for _, name := range slices.Sorted(maps.Keys(m.Servers)) {
		found = append(found, checkQueue(ctx, c, m.Servers[name].Ref().Queue(), enumspb.TASK_QUEUE_TYPE_ACTIVITY))
	}
	return found
}

func checkQueue(ctx context.Context, c *sdk.Client, queue string, kind enumspb.TaskQueueType) finding {
	f := finding{Check: "queue " + queue, Health: healthy}
	workers, err := c.Pollers(ctx, queue, kind)
	switch {
	case err != nil:
		f.Health, f.What = worth, fmt.Sprintf("cannot be looked at: %v", err)
	case len(workers) == 0:
		f.Health, f.What = bad, "no worker polls it: start one with `mcpx worker`"
	default:
		f.What = "polled by " + strings.Join(workers, ", ")
	}
	return f
}

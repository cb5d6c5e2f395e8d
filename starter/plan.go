package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/activities"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/starter/view"
	"github.com/mcpx-go/mcpx/toolclient"
)

// Plan shows what a plan would do.
func Plan(a *App) *cobra.Command {
	var in inputFlags
	var inspect bool
	cmd := &cobra.Command{
		Use:   "plan PLAN",
		Short: "Show what a plan would do, without doing it",
		Long: "A dry run: the steps in their waves, the contracts that protect them, how everything would be undone, and what the\n" +
			"lint found. It needs no Temporal. With --inspect the owners are asked what is there now, which only reads.",
		Example: "  mcpx plan provision-workspace -i workspace=acme --inspect",
		Args:    exactly("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given(cmd, "input"); err != nil {
				return err
			}
			return a.dryRun(cmd.Context(), args[0], in, inspect)
		},
	}
	in.bind(cmd)
	cmd.Flags().BoolVar(&inspect, "inspect", false, "ask the owners what is there now (reads only)")
	return cmd
}

func (a *App) dryRun(ctx context.Context, name string, in inputFlags, inspect bool) error {
	m, err := a.manifest()
	if err != nil {
		return err
	}
	resolved, err := a.resolve(m, name, in)
	if err != nil {
		return err
	}
	d := view.NewDryRun(resolved.Definition, resolved.Input)
	d.Warnings = warningsFor(m, resolved.Definition)
	if inspect {
		if d.Inspected, err = a.inspect(ctx, m, resolved); err != nil {
			return err
		}
	}
	return a.result(d, func() string { return view.Plan(a.Out, d) })
}

// warningsFor are the warnings of a plan, and those of the manifest about the contracts of the plan's tools.
func warningsFor(m *manifest.Manifest, def contract.Definition) []string {
	warnings := slices.Clone(def.Warnings)
	for _, w := range m.Warnings {
		text := w.Place + ": " + w.Text
		if concerns(w.Place, def) && !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// concerns tells whether a place is in the contract of one of the plan's tools.
func concerns(place string, def contract.Definition) bool {
	for ref, tool := range def.Tools {
		for _, name := range []string{ref, tool.Name} { // AgentX manifests name tools without their server
			field := contract.ElemsString([]contract.Elem{{Member: "tools"}, {Member: name}})
			rest, ok := strings.CutPrefix(place, field)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return true
			}
		}
	}
	return false
}

// resolve reads the input of a plan and checks it.
func (a *App) resolve(m *manifest.Manifest, name string, in inputFlags) (contract.Resolved, error) {
	plan, err := m.Plan(name)
	if err != nil {
		return contract.Resolved{}, err
	}
	input, err := in.read(a.In, plan.Schema)
	if err != nil {
		return contract.Resolved{}, err
	}
	resolved, err := m.Resolve(contract.Start{Plan: name, Input: input})
	if err == nil && len(resolved.Input) == 0 {
		resolved.Input = input
	}
	return resolved, err
}

// nobody is the transaction in whose name a dry run asks. No effect is ever its own.
const nobody = "dry-run"

// inspect asks the owners what is there now. What cannot be asked before earlier steps have run is said so.
func (a *App) inspect(ctx context.Context, m *manifest.Manifest, resolved contract.Resolved) ([]view.Inspected, error) {
	pool := toolclient.NewPool(toolclient.Options{Logger: a.aside()})
	defer func() { _ = pool.Close() }() // whatever it says, the looks are over
	scope := contract.Scope{"input": resolved.Input}
	all := make([]view.Inspected, 0, len(resolved.Definition.Steps))
	for _, step := range resolved.Definition.Steps {
		tool := resolved.Definition.Tools[step.Tool]
		seen := view.Inspected{Step: step.ID}
		look := tool.Inspect
		if look == nil {
			seen.Why = "its contract has no inspector"
			all = append(all, seen)
			continue
		}
		args := view.FillKnown(step.Args, scope)
		query, left, err := askNow(look.Args, args, scope)
		if err != nil {
			seen.Why = err.Error()
			all = append(all, seen)
			continue
		}
		server, err := m.Server(look.Server)
		if err != nil {
			return nil, err
		}
		seen.Tool, seen.Args = look.Server+"/"+look.Tool, view.Redact(query, tool.Sensitive)
		if err := pool.Add(server); err != nil {
			seen.Verdict, seen.Why = contract.Inconclusive, err.Error()
			all = append(all, seen)
			continue
		}
		answer := ask(ctx, pool, server.Ref(), tool, query, args)
		seen.Verdict, seen.Why = answer.Verdict, answer.Why
		if len(left) > 0 {
			seen.Why += fmt.Sprintf(" (asked without %s, which is not known yet)", strings.Join(left, ", "))
		}
		if answer.Result != nil {
			seen.Found = view.Redact(answer.Result.Raw(), tool.Sensitive)
		}
		all = append(all, seen)
	}
	return all, nil
}

// askNow fills an inspector's arguments before anything has run. Those that are known only later (tx.id, results) are
// left out, so that the question is a wider one. It fails where nothing would be left of the question.
func askNow(template contract.Template, args json.RawMessage, scope contract.Scope) (query json.RawMessage, left []string, err error) {
	var asked map[string]json.RawMessage
	if len(template) > 0 {
		if err := json.Unmarshal(template, &asked); err != nil {
			return nil, nil, fmt.Errorf("its arguments are no object: %w", err)
		}
	}
	wanted := len(asked)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		value, known, err := fillNow(contract.Template(asked[name]), args, scope)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("its argument %s: %w", name, err)
		case known:
			asked[name] = value
		default:
			delete(asked, name)
			left = append(left, name)
		}
	}
	if wanted > 0 && len(asked) == 0 {
		return nil, nil, fmt.Errorf("it can be asked only later: %s is not known yet", strings.Join(left, ", "))
	}
	query, err = json.Marshal(asked)
	return query, left, err
}

// fillNow fills one argument, if everything that it refers to is known.
func fillNow(template contract.Template, args json.RawMessage, scope contract.Scope) (value json.RawMessage, known bool, err error) {
	refs, err := template.Refs()
	if err != nil {
		return nil, false, err
	}
	for _, ref := range refs {
		switch ref.Path.Root {
		case "input":
		case "args":
			part, err := contract.Lookup(args, ref.Path.Elems)
			if errors.Is(err, contract.ErrNoValue) {
				return nil, false, nil
			}
			if err != nil {
				return nil, false, err
			}
			if inside, err := contract.Template(part).Refs(); err != nil || len(inside) > 0 {
				return nil, false, err
			}
		default:
			return nil, false, nil
		}
	}
	value, err = template.Fill(contract.Scope{"input": scope["input"], "args": args})
	return value, err == nil, err
}

// ask asks one owner, as a transaction would.
func ask(ctx context.Context, pool *toolclient.Pool, server contract.ServerRef, tool contract.Tool, query, args json.RawMessage) contract.Look {
	ctx, cancel := context.WithTimeout(ctx, tool.Inspect.Timeout.Std())
	defer cancel()
	reply := pool.Call(ctx, server, toolclient.Call{Tool: tool.Inspect.Tool, Args: query})
	look, failed := activities.Judge(contract.Inspection{
		Tx: contract.TxRef{ID: nobody, Run: nobody}, Server: server, Tool: tool.Inspect.Tool, Query: query,
		Present: tool.Inspect.Present, Absent: tool.Inspect.Absent, Map: tool.Inspect.Result, Args: args,
	}, reply)
	if look.Verdict == contract.Inconclusive && !failed && reply.Complete() && slices.Contains(tool.Inspect.Proves, contract.ProofTx) {
		look.Why = "something is there, and it cannot belong to a transaction that is yet to come"
	}
	return look
}

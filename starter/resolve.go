package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/sdk"
)

// resolutionMeanings says what each resolution means.
var resolutionMeanings = []struct {
	as      contract.Resolution
	meaning string
}{
	{contract.ResolveCommitted, "it is in effect (--result says what later steps need)"},
	{contract.ResolveAbsent, "it is not in effect"},
	{contract.ResolveInspect, "ask the owner again"},
	{contract.ResolveRetry, "try its compensation again"},
	{contract.ResolveAccepted, "accept that it stays"},
}

// Resolve says what became of a step that MCPx cannot decide.
func Resolve(a *App) *cobra.Command {
	var flags decideFlags
	var as, result string
	var meanings strings.Builder
	for _, r := range resolutionMeanings {
		fmt.Fprintf(&meanings, "  %-10s %s\n", r.as, r.meaning)
	}
	cmd := &cobra.Command{
		Use:   "resolve ID STEP",
		Short: "Say what became of a step that nobody else can tell",
		Long: "Answers for a step that is UNKNOWN (committed, absent, inspect) or whose compensation failed (retry, accepted):\n\n" +
			meanings.String() + "\nA step that is committed needs a --result where later steps refer to it: the manifest says what they refer to.",
		Args: exactly("ID", "STEP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given(cmd, "result"); err != nil {
				return err
			}
			d := contract.Decision{Step: args[1], As: contract.Resolution(as)}
			if err := checkResolution(d, flags.reason, result); err != nil {
				return err
			}
			return a.decide(cmd.Context(), args[0], flags, func(ctx context.Context, c *sdk.Client, id string, who contract.Decision) (contract.Judged, error) {
				d.By, d.Reason = who.By, who.Reason
				if result != "" {
					d.Result = json.RawMessage(result)
				}
				if d.As == contract.ResolveCommitted {
					if err := a.checkResult(ctx, c, id, d); err != nil {
						return contract.Judged{}, err
					}
				}
				return c.Resolve(ctx, id, d)
			})
		},
	}
	flags.bind(cmd)
	cmd.Flags().StringVar(&as, "as", "", "what became of it, a `WORD`: committed, absent, inspect, retry or accepted (required)")
	cmd.Flags().StringVar(&result, "result", "", "`JSON` that the step's call would have answered; with --as committed")
	return cmd
}

func checkResolution(d contract.Decision, reason, result string) error {
	names := make([]string, len(contract.Resolutions))
	for i, r := range contract.Resolutions {
		names[i] = string(r)
	}
	switch {
	case d.As == "":
		return usagef("say what became of step %s: --as %s", d.Step, strings.Join(names, ", "))
	case !slices.Contains(contract.Resolutions, d.As):
		return usagef("--as %q is none of %s%s", d.As, strings.Join(names, ", "), didYouMean(nearNames(string(d.As), names)))
	case strings.TrimSpace(reason) == "":
		return usagef("say why: --reason WHY. It is kept with the transaction")
	case result != "" && d.As != contract.ResolveCommitted:
		return usagef("--result goes with --as committed alone")
	}
	if result != "" {
		if _, err := canon.JSON([]byte(result)); err != nil {
			return usagef("--result: %w", err)
		}
	}
	return nil
}

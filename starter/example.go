package starter

import (
	"github.com/spf13/cobra"

	"github.com/mcpx-go/mcpx/examples/workspace"
)

// Example runs the example applications, each as a process of its own. People meet them through Dev and Demo.
func Example(*App) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "example",
		Short:  "Run an example application",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(workspace.Command())
	return cmd
}

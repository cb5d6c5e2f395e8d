package starter

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"
)

// buildInfo says what this mcpx was made of.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	SDK      string `json:"temporalSDK"`
	Platform string `json:"platform"`
}

func readBuildInfo() buildInfo {
	info := buildInfo{
		Version: "(devel)", Go: runtime.Version(), SDK: temporal.SDKVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

// Version prints what this mcpx was made of.
func Version(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			info := readBuildInfo()
			return a.result(info, func() string {
				return fmt.Sprintf("mcpx %s (%s, Temporal SDK %s, %s)", info.Version, info.Go, info.SDK, info.Platform)
			})
		},
	}
}

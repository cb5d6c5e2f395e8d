// Command mcpx is a reliability runtime for consequential agent actions.
package main

import (
	_ "embed"
	"os"

	"github.com/mcpx-go/mcpx/starter"
)

//go:embed mcpx.yaml
var examples []byte

func main() {
	os.Exit(starter.Main(examples,
		starter.Dev,
		starter.Demo,
		starter.Worker,
		starter.Plan,
		starter.Start,
		starter.List,
		starter.Status,
		starter.Approve,
		starter.Reject,
		starter.Resume,
		starter.Abort,
		starter.Resolve,
		starter.Receipt,
		starter.Doctor,
		starter.Version,
		starter.Example,
	))
}

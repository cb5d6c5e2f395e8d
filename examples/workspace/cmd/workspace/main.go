// Command workspace runs one of the four reference applications.
package main

import (
	"os"

	"github.com/mcpx-go/mcpx/examples/workspace"
)

func main() { os.Exit(workspace.Main(os.Args[1:])) }

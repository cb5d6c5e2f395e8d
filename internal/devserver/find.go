package devserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// BinaryVariable names the environment variable that says which temporal program to use.
const BinaryVariable = "MCPX_TEMPORAL"

// ErrNotFound says that there is no temporal program, and how to get one.
var ErrNotFound = errors.New("no temporal program found: put the Temporal CLI on the PATH, " +
	"build it in a checkout of MCPx with `make temporal`, or name it in " + BinaryVariable)

// Find returns the temporal program to use: the one that MCPX_TEMPORAL names, else the one on the PATH, else
// temporal or bin/temporal beside the running program, in the working directory, or in a directory above it that holds
// a go.mod (so that tests find the one of their checkout).
//
// Where there is none it returns ErrNotFound. A program that MCPX_TEMPORAL names and that cannot be run is an error of
// its own: the next best one would not be what was asked for.
func Find() (string, error) {
	if named := os.Getenv(BinaryVariable); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("%s names no program that can be run: %w", BinaryVariable, err)
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return filepath.Abs(path)
	}
	for _, candidate := range candidates() {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", ErrNotFound
}

// candidates are the absolute paths outside the PATH, best first.
func candidates() []string {
	name := "temporal"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	var paths []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dir := filepath.Dir(exe)
		paths = append(paths, filepath.Join(dir, name), filepath.Join(dir, "bin", name))
	}
	dir, err := os.Getwd()
	if err != nil {
		return paths
	}
	paths = append(paths, filepath.Join(dir, "bin", name))
	for {
		if exists(filepath.Join(dir, "go.mod")) {
			paths = append(paths, filepath.Join(dir, "bin", name))
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return paths
		}
		dir = parent
	}
}

//go:build unix

package devserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/internal/devserver"
)

// program makes an executable file.
func program(t *testing.T, path string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
	return path
}

// elsewhere moves the test into an empty directory, with an empty PATH and nothing named.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Chdir(dir)
	t.Setenv("PATH", filepath.Join(dir, "empty"))
	t.Setenv(devserver.BinaryVariable, "")
	return dir
}

func TestFindPrefersWhatIsNamedThenThePathThenTheBuiltOne(t *testing.T) {
	dir := elsewhere(t)
	built := program(t, filepath.Join(dir, "bin", "temporal"))
	requireFound(t, built)

	onPath := program(t, filepath.Join(dir, "path", "temporal"))
	t.Setenv("PATH", filepath.Dir(onPath))
	requireFound(t, onPath)

	named := program(t, filepath.Join(dir, "mine", "temporal-1.2"))
	t.Setenv(devserver.BinaryVariable, named)
	requireFound(t, named)
}

func requireFound(t *testing.T, want string) {
	t.Helper()
	found, err := devserver.Find()
	require.NoError(t, err)
	require.Equal(t, want, found)
}

func TestFindLooksInTheCheckoutAroundTheWorkingDirectory(t *testing.T) {
	dir := elsewhere(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example\n"), 0o600))
	built := program(t, filepath.Join(dir, "bin", "temporal"))
	below := filepath.Join(dir, "internal", "package")
	require.NoError(t, os.MkdirAll(below, 0o700))
	t.Chdir(below)
	requireFound(t, built)
}

func TestFindDoesNotReplaceWhatWasNamed(t *testing.T) {
	dir := elsewhere(t)
	program(t, filepath.Join(dir, "bin", "temporal"))
	t.Setenv(devserver.BinaryVariable, filepath.Join(dir, "missing"))
	_, err := devserver.Find()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, devserver.BinaryVariable)
}

func TestFindSaysHowToGetOne(t *testing.T) {
	elsewhere(t)
	_, err := devserver.Find()
	require.ErrorIs(t, err, devserver.ErrNotFound)
	require.ErrorContains(t, err, "make temporal")
}

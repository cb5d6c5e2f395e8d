package manifest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with testdata/…/name.txt, or writes it there.
func golden(t *testing.T, path, got string) {
	t.Helper()
	path = strings.TrimSuffix(path, filepath.Ext(path)) + ".txt"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the tests with -update to make it")
	assert.Equal(t, string(want), got)
}

// files lists the manifests in a directory of testdata.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.yaml", "*.json"} {
		found, err := filepath.Glob(filepath.Join("testdata", dir, pattern))
		require.NoError(t, err)
		all = append(all, found...)
	}
	require.NotEmpty(t, all)
	return all
}

func TestEveryProblemIsNamedWithItsPlaceAndWhatWouldBeRight(t *testing.T) {
	for _, path := range files(t, "errors") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := Load(path)
			require.Error(t, err)
			var all Errors
			require.ErrorAs(t, err, &all)
			var first Error
			require.ErrorAs(t, err, &first)
			assert.Equal(t, all[0], first)
			golden(t, path, strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), "")+"\n")
		})
	}
}

func TestTheLintWarnsWhereAManifestCannotBeMadeSafe(t *testing.T) {
	for _, path := range files(t, "lint") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := Load(path)
			require.NoError(t, err)
			var b strings.Builder
			for _, w := range m.Warnings {
				fmt.Fprintln(&b, strings.ReplaceAll(w.String(), filepath.Dir(path)+string(filepath.Separator), ""))
			}
			for _, p := range m.Plans {
				fmt.Fprintf(&b, "\nplan %s:\n", p.Name)
				for _, w := range p.Warnings {
					fmt.Fprintf(&b, "%s [%s]\n", w.Place, w.Rule)
				}
				assert.Len(t, p.Definition.Warnings, len(p.Warnings))
			}
			golden(t, path, b.String())
		})
	}
}

func TestAnAgentXManifestLoadsAsItIs(t *testing.T) {
	for _, path := range files(t, "agentx") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := Load(path)
			require.NoError(t, err)
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			require.NoError(t, enc.Encode(struct {
				Servers  map[string]contract.Server
				Defaults Defaults
				Unlisted Unlisted
				Tools    map[string]contract.Tool
			}{m.Servers, m.Defaults, m.Unlisted, m.Tools}))
			for _, w := range m.Warnings {
				fmt.Fprintf(&b, "%d:%d: %s: %s [%s]\n", w.Line, w.Column, w.Place, w.Text, w.Rule)
			}
			golden(t, path, b.String())
		})
	}
}

func TestWhatTheFormatPromisesLoads(t *testing.T) {
	for _, path := range files(t, "good") {
		m, err := Load(path)
		require.NoError(t, err, path)
		assert.NotEmpty(t, m.Plans, path)
		for _, p := range m.Plans {
			resolved, err := m.Resolve(contract.Start{Plan: p.Name, Input: json.RawMessage(`{"workspace":"acme"}`)})
			require.NoError(t, err)
			assert.NotEmpty(t, resolved.Definition.Digest)
			raw, err := json.Marshal(resolved.Definition)
			require.NoError(t, err)
			var again contract.Definition
			require.NoError(t, json.Unmarshal(raw, &again))
			assert.Equal(t, resolved.Definition, again, "a definition survives its way through JSON")
		}
	}
}

package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

// parseAlone parses a text without reading other files.
func parseAlone(name string, text []byte) (*Manifest, error) {
	l := newLoader(nil)
	l.read = func(string) ([]byte, error) { return nil, os.ErrNotExist }
	l.glob = func(string) ([]string, error) { return nil, nil }
	return l.parse(name, text)
}

func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(f, err)
	more, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	for _, path := range append(append(seeds, more...), "../mcpx.yaml") {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range []string{"mcpx.yaml", "mcpx.json"} {
			m, err := parseAlone(name, text)
			if err != nil {
				var all Errors
				require.ErrorAs(t, err, &all)
				require.NotEmpty(t, err.Error())
				continue
			}
			for _, p := range m.Plans {
				for _, input := range []string{``, `{}`, `{"workspace":"a","n":1}`, `[]`, `{"a":{"b":[1,2.5,null]}}`} {
					_, _ = m.Resolve(contract.Start{Plan: p.Name, Input: json.RawMessage(input)})
					_, _, _ = m.Identity(p.Name, json.RawMessage(input))
				}
			}
		}
	})
}

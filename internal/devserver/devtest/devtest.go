// Package devtest gives tests a real Temporal server.
package devtest

import (
	"context"
	"testing"

	"github.com/mcpx-go/mcpx/internal/devserver"
)

// Start starts a development server that ends with the test. Without a DataDir its database is in memory. It fails the
// test where there is no temporal program, and skips it under -short, which is for runs without one.
func Start(t testing.TB, o devserver.Options) *devserver.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	if o.DataDir == "" {
		o.Ephemeral = true
	}
	s, err := devserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

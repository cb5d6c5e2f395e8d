package sdk

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/internal/devserver"
)

// isolate keeps the settings of whoever runs the tests out of them.
func isolate(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
}

func TestDialSaysWhereNothingAnswers(t *testing.T) {
	isolate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = Dial(ctx, Options{Address: address})
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "mcpx dev")
	require.ErrorContains(t, err, "TEMPORAL_ADDRESS")
}

func TestDialSaysHowToMakeTheNamespace(t *testing.T) {
	isolate(t)
	address := server(t)
	_, err := Dial(t.Context(), Options{Address: address, Namespace: "nowhere"})
	require.ErrorIs(t, err, ErrNamespaceMissing)
	require.ErrorContains(t, err, `"nowhere"`)
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "temporal operator namespace create --namespace nowhere")
}

func TestDialLetsTheResponsibleMakeTheNamespace(t *testing.T) {
	isolate(t)
	address := server(t)
	c, err := Dial(t.Context(), Options{Address: address, Namespace: unique(t), Prepare: func(ctx context.Context, c client.Client, namespace string) error {
		return devserver.EnsureNamespace(ctx, c, namespace, 0)
	}})
	require.NoError(t, err)
	defer c.Close()
	mustStart(t, c, ask(t, ""))

	no := errors.New("not today")
	_, err = Dial(t.Context(), Options{Address: address, Prepare: func(context.Context, client.Client, string) error { return no }})
	require.ErrorIs(t, err, no)
}

func TestDialTakesTemporalsOwnSettings(t *testing.T) {
	address := server(t)
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte("[profile.team]\naddress = \""+address+"\"\nnamespace = \"default\"\n"), 0o600))
	for _, test := range []struct {
		name      string
		env       map[string]string
		options   Options
		namespace string
	}{
		{"variables", map[string]string{"TEMPORAL_ADDRESS": address}, Options{}, contract.Namespace},
		{"variables with a namespace", map[string]string{"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": "default"}, Options{}, "default"},
		{"a profile", map[string]string{"TEMPORAL_CONFIG_FILE": file}, Options{Profile: "team"}, "default"},
		{"a profile by variable", map[string]string{"TEMPORAL_CONFIG_FILE": file, "TEMPORAL_PROFILE": "team"}, Options{}, "default"},
		{"options first", map[string]string{"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_NAMESPACE": "x"},
			Options{Address: address, Namespace: contract.Namespace, Identity: "tester"}, contract.Namespace},
	} {
		t.Run(test.name, func(t *testing.T) {
			isolate(t)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			c, err := Dial(t.Context(), test.options)
			require.NoError(t, err)
			defer c.Close()
			require.Equal(t, test.namespace, c.Namespace())
			require.Equal(t, address, c.place.address)
			require.NotEmpty(t, c.place.identity)
		})
	}
	t.Run("a profile that does not exist", func(t *testing.T) {
		isolate(t)
		t.Setenv("TEMPORAL_CONFIG_FILE", file)
		_, err := Dial(t.Context(), Options{Profile: "nobody"})
		require.ErrorContains(t, err, `profile "nobody"`)
	})
}

func TestErrorsOfTheServerSayWhatToDo(t *testing.T) {
	c, n := connect(t, contract.Namespace)
	id := mustStart(t, c, ask(t, "")).ID
	for _, test := range []struct {
		code codes.Code
		want error
		hint string
	}{
		{codes.PermissionDenied, ErrNotPermitted, "TEMPORAL_API_KEY"},
		{codes.Unauthenticated, ErrNotPermitted, "TEMPORAL_API_KEY"},
	} {
		spoil := func(string, any) error { return status.Error(test.code, "no") }
		n.spoil.Store(&spoil)
		_, err := c.Snapshot(t.Context(), id)
		require.ErrorIs(t, err, test.want)
		require.ErrorContains(t, err, test.hint)
		require.ErrorIs(t, c.checkNamespace(t.Context()), test.want)
	}
	spoil := func(string, any) error { return unavailable }
	n.spoil.Store(&spoil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*tick)
	defer cancel()
	_, err := c.Snapshot(ctx, id)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, c.checkNamespace(ctx), ErrUnavailable)
	spoil = func(string, any) error { return status.Error(codes.Unimplemented, "what?") }
	require.NoError(t, c.checkNamespace(t.Context()), "who does not say is believed")
}

func TestClientOfAnothersConnectionLeavesItOpen(t *testing.T) {
	c, _ := connect(t, contract.Namespace)
	other := New(c.Temporal(), contract.Namespace)
	other.Close()
	mustStart(t, c, ask(t, ""))
}

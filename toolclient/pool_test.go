//go:build unix

package toolclient

import (
	"encoding/base64"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/contract"
)

func TestDefinitionsAreCheckedWhenAdded(t *testing.T) {
	web := func(url string, headers map[string]string) contract.Server {
		return contract.Server{Name: "s", HTTP: &contract.HTTPServer{URL: url, Headers: headers}}
	}
	tests := map[string]struct {
		server contract.Server
		why    string
	}{
		"nothing":        {contract.Server{Name: "s"}, "either http or stdio"},
		"two ways":       {contract.Server{Name: "s", HTTP: &contract.HTTPServer{URL: "http://h/"}, Stdio: &contract.StdioServer{Command: []string{"x"}}}, "either http or stdio"},
		"a browser's":    {contract.Server{Name: "s", WebMCP: &contract.WebMCPServer{Origin: "http://h"}}, "either http or stdio"},
		"no command":     {contract.Server{Name: "s", Stdio: &contract.StdioServer{}}, "no command"},
		"other scheme":   {web("ftp://h/", nil), "http or https"},
		"no host":        {web("http:///mcp", nil), "a host"},
		"bad URL":        {web("http://u:p4ssword@h:x/", nil), "cannot be read"},
		"header name":    {web("http://h/", map[string]string{"a b": "c"}), "not a header name"},
		"resending":      {web("http://h/", map[string]string{"idempotency-key": "k"}), "idempotency-key cannot be set"},
		"resending too":  {web("http://h/", map[string]string{"X-Idempotency-Key": "k"}), "X-Idempotency-Key cannot be set"},
		"session":        {web("http://h/", map[string]string{"mcp-session-id": "k"}), "cannot be set"},
		"foreign secret": {web("http://h/", map[string]string{"A": "${secret:OTHER}"}), `"OTHER" is not in its list`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newPool(t, Options{})
			err := p.Add(test.server)
			require.ErrorContains(t, err, test.why)
			require.NotContains(t, err.Error(), "p4ssword")
		})
	}
}

func TestIdentityIsCheckedBeforeTheServerIsTouched(t *testing.T) {
	s := newScripted(t, "answers", "modern")
	p, _ := newPool(t, Options{}, s.server())
	require.NoError(t, p.Add(s.server()), "the same once more")
	changed := s.server()
	changed.TrustRefusals = true
	require.ErrorContains(t, p.Add(changed), "another definition")

	ref := s.server().Ref()
	for _, other := range []contract.ServerRef{{Name: ref.Name, ID: "00000000"}, {Name: "who", ID: ref.ID}} {
		r := p.Call(within(t, wait), other, mutation(wait))
		require.Equal(t, contract.NotWritten, r.Written)
		require.Contains(t, r.Why, "unknown server")
		_, err := p.Tools(within(t, wait), other)
		require.ErrorIs(t, err, ErrUnknownServer)
		_, ok := p.Late(other, "x")
		require.False(t, ok)
	}
	require.Contains(t, p.Call(within(t, wait), contract.ServerRef{Name: ref.Name, ID: "00000000"}, mutation(wait)).Why,
		"peer is "+ref.ID+" here, not 00000000")
	require.Empty(t, s.lines("pids"))

	namesake := newScripted(t, "answers", "legacy").server()
	require.NoError(t, p.Add(namesake), "servers of one name and two identities do not meet")
	require.Equal(t, contract.Answered, p.Call(within(t, wait), namesake.Ref(), mutation(wait)).Written)
	require.Empty(t, s.lines("pids"))
}

func TestSecretsReachTheServerAndNothingElse(t *testing.T) {
	const secret, password = "hush-hush-4711", "p4ssword/ä"
	peer := newHTTPPeer(t, "modern", func(x *exchangeAt) { x.reset() })
	server := peer.server()
	server.HTTP.URL = "http://user:p4ssword%2F%C3%A4@" + strings.TrimPrefix(peer.url, "http://")
	server.HTTP.Headers = map[string]string{"X-Api-Key": "key ${secret:KEY}", "X-Tenant": "tenant-name"}
	server.Secrets = []string{"KEY"}
	p, logged := newPool(t, Options{Secret: func(name string) (string, bool) { return secret, name == "KEY" }}, server)
	r := p.Call(within(t, wait), server.Ref(), mutation(wait))
	require.Equal(t, contract.FullyWritten, r.Written, r.Why)
	peer.mu.Lock()
	head := peer.heads[0]
	peer.mu.Unlock()
	require.Equal(t, "key "+secret, head.Get("X-Api-Key"))
	require.Equal(t, "tenant-name", head.Get("X-Tenant"))
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+password)), head.Get("Authorization"))
	require.Equal(t, "mcpx/0", head.Get("User-Agent"))
	require.Empty(t, head.Get("Idempotency-Key"))
	peer.stop()
	r2 := p.Call(within(t, wait), server.Ref(), mutation(wait))
	for _, text := range []string{r.Why, r2.Why, logged.String()} {
		require.NotContains(t, text, secret)
		require.NotContains(t, text, "p4ssword")
	}
}

func TestMissingSecretMeansNothingIsSent(t *testing.T) {
	peer := newHTTPPeer(t, "modern", func(x *exchangeAt) { x.answer() })
	stdio := newScripted(t, "answers", "modern")
	for _, server := range []contract.Server{peer.server(), stdio.server()} {
		server.Secrets = []string{"ABSENT"}
		if server.HTTP != nil {
			server.HTTP.Headers = map[string]string{"Authorization": "Bearer ${secret:ABSENT}"}
		} else {
			server.Stdio.Env = map[string]string{"TOKEN": "${secret:ABSENT}"}
		}
		found := false
		var mu sync.Mutex
		p, _ := newPool(t, Options{Secret: func(string) (string, bool) {
			mu.Lock()
			defer mu.Unlock()
			return "now it is here", found
		}}, server)
		r := p.Call(within(t, wait), server.Ref(), mutation(wait))
		require.Equal(t, contract.NotWritten, r.Written)
		require.Contains(t, r.Why, `the secret "ABSENT" is not set`)
		mu.Lock()
		found = true
		mu.Unlock()
		r = p.Call(within(t, wait), server.Ref(), mutation(wait))
		require.Equal(t, contract.Answered, r.Written, "a failed attempt is not remembered")
	}
}

func TestCallersShareOneAttemptToConnect(t *testing.T) {
	s := newScripted(t, "answers", "silent")
	p, _ := newPool(t, Options{DiscoverTimeout: 300 * time.Millisecond}, s.server())
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			r := p.Call(within(t, wait), s.server().Ref(), mutation(wait))
			if r.Written != contract.Answered {
				t.Error(r.Why)
			}
		})
	}
	calls.Wait()
	require.Len(t, s.lines("pids"), 1)
	require.Len(t, s.lines("calls"), 10)
}

func TestAttemptsToConnectPauseLongerEachTime(t *testing.T) {
	p, _ := newPool(t, Options{})
	now := time.Now()
	p.now = func() time.Time { return now }
	o := &owner{pool: p, failedAt: now}
	for failures, millis := range []int64{0, 100, 200, 400, 800, 1600, 2000, 2000} {
		o.failures = failures
		require.Equal(t, millis, o.pause().Milliseconds())
	}
	o.failures, o.failedAt = 1000, now.Add(-3*time.Second)
	require.LessOrEqual(t, o.pause(), time.Duration(0), "the time that has passed counts")
}

func TestCallsWhileConnectingEndWithTheirOwnTime(t *testing.T) {
	peer := newHTTPPeer(t, "modern", nil, func(peer *httpPeer) {
		peer.onAccept = func(c net.Conn) bool {
			_, _ = io.Copy(io.Discard, c)
			return false
		}
	})
	p, _ := newPool(t, Options{}, peer.server())
	r := p.Call(within(t, 50*time.Millisecond), peer.ref(), mutation(wait))
	require.Equal(t, contract.NotWritten, r.Written)
	require.Contains(t, r.Why, "the caller stopped waiting: the session was not open yet")
	r = p.Call(within(t, wait), peer.ref(), mutation(50*time.Millisecond))
	require.Equal(t, contract.NotWritten, r.Written)
	require.Contains(t, r.Why, "past its write deadline: the session was not open yet")
}

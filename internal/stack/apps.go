package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/examples/workspace"
	"github.com/mcpx-go/mcpx/manifest"
)

// AppServers says which servers of a manifest are example applications on this machine: those with a contract for the
// tool that an application creates with, and that application's name or default port. The keys are the servers' local
// names; the ports are those of the manifest.
func AppServers(m *manifest.Manifest) map[string]workspace.App {
	apps := map[string]workspace.App{}
	for name, server := range m.Servers {
		at, ok := place(server)
		if !ok || !loopback(at.Hostname()) {
			continue
		}
		port, err := strconv.Atoi(at.Port())
		if err != nil {
			continue
		}
		for _, app := range workspace.Apps() {
			_, listed := m.Tools[name+"/"+app.Tools()[0]]
			if listed && (port == app.Port || name == string(app.Kind)) {
				app.Port = port
				apps[name] = app
			}
		}
	}
	return apps
}

// place is where a server is on the network.
func place(server contract.Server) (*url.URL, bool) {
	text := ""
	switch {
	case server.HTTP != nil:
		text = server.HTTP.URL
	case server.WebMCP != nil:
		text = server.WebMCP.Origin
	}
	at, err := url.Parse(text)
	return at, err == nil && at.Host != ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// moved is a server at another port.
func moved(server contract.Server, port string) contract.Server {
	at, _ := place(server)
	at.Host = net.JoinHostPort(at.Hostname(), port)
	switch {
	case server.HTTP != nil:
		http := *server.HTTP
		http.URL = at.String()
		server.HTTP = &http
	case server.WebMCP != nil:
		web := *server.WebMCP
		web.Origin = at.String()
		server.WebMCP = &web
	}
	return server
}

// startApps starts the applications at the same time, and makes the manifest follow where they chose their ports.
func (s *Stack) startApps(ctx context.Context) error {
	binary := s.options.Binary
	if len(binary) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the program that runs the applications: %w", err)
		}
		binary = []string{self, "example", "workspace"}
	}
	var log workspace.StartOption = func(*workspace.Process) {}
	if s.options.AppLog != nil {
		log = workspace.WithStderr(&locked{w: s.options.AppLog})
	}
	servers := AppServers(s.Manifest)
	kinds := map[workspace.Kind]workspace.App{}
	for _, app := range servers {
		kinds[app.Kind] = app
	}

	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	for kind, app := range kinds {
		group.Go(func() error {
			addr := app.Addr()
			if s.options.FreePorts {
				addr = "127.0.0.1:0"
			}
			process, err := workspace.Start(groupCtx, kind, binary, s.dataDir(), addr, log)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			s.Processes[kind], s.Apps[kind] = process, process.Client()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if !s.options.FreePorts {
		return nil
	}
	changed := map[string]contract.Server{}
	for name, app := range servers {
		at, err := url.Parse(s.Processes[app.Kind].URL())
		if err != nil {
			return fmt.Errorf("address of the %s application: %w", app.Kind, err)
		}
		changed[name] = moved(s.Manifest.Servers[name], at.Port())
	}
	m, err := s.Manifest.WithServers(changed)
	if err != nil {
		return fmt.Errorf("manifest with the applications on free ports: %w", err)
	}
	s.Manifest = m
	return nil
}

// stopApps stops the applications at the same time.
func (s *Stack) stopApps() error {
	ctx, cancel := context.WithTimeout(context.Background(), appGrace)
	defer cancel()
	errs := make(chan error, len(s.Processes))
	for _, process := range s.Processes {
		go func() { errs <- process.Stop(ctx) }()
	}
	var all error
	for range s.Processes {
		all = errors.Join(all, <-errs)
	}
	return all
}

// Kinds lists the applications that run, in the order in which a workspace is built from them.
func (s *Stack) Kinds() []workspace.Kind {
	var kinds []workspace.Kind
	running := slices.Collect(maps.Keys(s.Processes))
	for _, app := range workspace.Apps() {
		if slices.Contains(running, app.Kind) {
			kinds = append(kinds, app.Kind)
		}
	}
	return kinds
}

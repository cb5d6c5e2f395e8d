package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

// stopGrace is how long a stopping application waits for calls in flight.
const stopGrace = 2 * time.Second

// Config says how to run one application.
type Config struct {
	// Kind is the application to run. Required.
	Kind Kind
	// Addr is the TCP address to listen on; port 0 picks a free one. Empty
	// means the application's default port on loopback.
	Addr string
	// DataDir is the directory for the SQLite file, <kind>.db. It is created
	// if it does not exist.
	DataDir string
	// DBPath is the SQLite file itself, instead of DataDir.
	DBPath string
	// Logger receives what happens. Nil discards it.
	Logger *slog.Logger
	// OnReady, if set, is called once, with the address in use, when
	// connections are accepted.
	OnReady func(addr string)
}

// Serve runs one application until the context ends, then finishes the calls
// in flight and returns nil. Calls that a fault delays or holds are abandoned.
// An error means that the application could not start or lost its listener.
//
// The faults [CrashBefore] and [CrashAfter] kill the process that runs Serve.
func Serve(ctx context.Context, cfg Config) (err error) {
	app, err := AppOf(cfg.Kind)
	if err != nil {
		return err
	}
	path := cfg.DBPath
	if path == "" {
		if cfg.DataDir == "" {
			return fmt.Errorf("the %s application needs a place for its data: set a data directory", app.Kind)
		}
		path = filepath.Join(cfg.DataDir, string(app.Kind)+".db")
	}
	addr := cfg.Addr
	if addr == "" {
		addr = app.Addr()
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("app", string(app.Kind))

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("the %s application cannot listen on %s: %w; choose another address", app.Kind, addr, err)
	}
	store, err := openStore(ctx, path)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, store.close()) }()

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	a := newApplication(running, app, store, log)
	srv := &http.Server{
		Handler:           a.httpHandler(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	log.Info("listening", "url", mcpURL(listener.Addr().String()), "db", path)
	if cfg.OnReady != nil {
		cfg.OnReady(listener.Addr().String())
	}

	select {
	case err = <-served:
		err = fmt.Errorf("the %s application stopped serving: %w", app.Kind, err)
	case <-ctx.Done():
		log.Info("stopping")
	}
	stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		err = errors.Join(err, srv.Close())
	}
	a.late.Wait()
	return err
}

// mcpURL returns the MCP endpoint of an application that listens on addr. An
// unspecified address is reached through loopback.
func mcpURL(addr string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
	}
	return "http://" + addr + mcpPath
}

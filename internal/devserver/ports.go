package devserver

import (
	"fmt"
	"net"
)

// ports are the server's, all on loopback.
type ports struct{ grpc, http, metrics, ui int }

// choosePorts takes the ports that were asked for, where they are free, and free ones for the rest.
func choosePorts(o Options) (ports, error) {
	chosen := ports{grpc: o.Port, ui: o.UIPort}
	for _, fixed := range []struct {
		what string
		port int
	}{{"gRPC", o.Port}, {"web UI", o.UIPort}} {
		if fixed.port == 0 {
			continue
		}
		l, err := net.Listen("tcp", address(fixed.port))
		if err != nil {
			return ports{}, fmt.Errorf("%w: the Temporal development server cannot have %s as its %s port: "+
				"end what listens there, or choose another port: %w", ErrPortInUse, address(fixed.port), fixed.what, err)
		}
		_ = l.Close()
	}

	for _, port := range []*int{&chosen.grpc, &chosen.http, &chosen.metrics, &chosen.ui} {
		if *port != 0 {
			continue
		}
		var err error
		if *port, err = freePort(); err != nil {
			return ports{}, fmt.Errorf("find a free port for the Temporal development server: %w", err)
		}
	}
	return chosen, nil
}

// freePort finds a port that nothing listens on. A connection that the listening side closes leaves the port in
// TIME_WAIT on Linux: the system gives it to nobody who asks for any port, while a server may still bind it by number.
func freePort() (int, error) {
	l, err := net.Listen("tcp", address(0))
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	server, err := l.Accept()
	if err != nil {
		return 0, err
	}
	_ = server.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

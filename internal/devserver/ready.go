package devserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const (
	frontendService = "temporal.api.workflowservice.v1.WorkflowService"
	readyPoll       = 25 * time.Millisecond
	readyCall       = 2 * time.Second

	// bannerWait is how long a healthy server may take to print its address. One that never prints it is taken as
	// it is.
	bannerWait = 2 * time.Second
)

// errPortTaken says that a port which was free a moment ago is taken now: another choice may work.
var errPortTaken = errors.New("a chosen port was taken meanwhile")

// connection is the API of one server over a plain connection.
type connection struct{ *grpc.ClientConn }

func dial(address string) (connection, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return connection{}, fmt.Errorf("connect to the Temporal development server at %s: %w", address, err)
	}
	return connection{conn}, nil
}

func (c connection) WorkflowService() workflowservice.WorkflowServiceClient {
	return workflowservice.NewWorkflowServiceClient(c.ClientConn)
}

func (c connection) OperatorService() operatorservice.OperatorServiceClient {
	return operatorservice.NewOperatorServiceClient(c.ClientConn)
}

// ready waits until the server serves and prepares its namespace.
func (s *Server) ready(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.process.Done():
			cancel(s.earlyExit())
		case <-ctx.Done():
		}
	}()
	err := s.prepare(ctx, o)
	if err == nil && ctx.Err() == nil {
		return nil
	}
	// The end of the process explains whatever the calls say.
	select {
	case <-s.process.Done():
		return s.earlyExit()
	default:
	}
	if err == nil {
		err = ctx.Err()
	}
	return fmt.Errorf("%w: %w%s", ErrStartFailed, err, s.log.tail())
}

func (s *Server) prepare(ctx context.Context, o Options) error {
	conn, err := dial(s.info.Address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := awaitHealth(ctx, conn); err != nil {
		return fmt.Errorf("%s does not serve: %w", s.info.Address, err)
	}
	// Health alone could come from a stranger that took the port first.
	if err := s.log.awaitBanner(ctx, bannerWait); err != nil {
		return err
	}
	if err := EnsureNamespace(ctx, conn, o.Namespace, o.Retention); err != nil {
		return err
	}
	return EnsureSearchAttributes(ctx, conn, o.Namespace, o.SearchAttributes)
}

// awaitHealth polls until the frontend says that it serves and answers a call.
func awaitHealth(ctx context.Context, conn connection) error {
	check := func() error {
		ctx, cancel := context.WithTimeout(ctx, readyCall)
		defer cancel()
		// The first attempts meet a closed port; waiting for the connection here would wait out its back-off.
		conn.ResetConnectBackoff()
		health, err := grpc_health_v1.NewHealthClient(conn).Check(ctx,
			&grpc_health_v1.HealthCheckRequest{Service: frontendService})
		if err != nil {
			return err
		}
		if status := health.GetStatus(); status != grpc_health_v1.HealthCheckResponse_SERVING {
			return fmt.Errorf("its health is %s", status)
		}
		_, err = conn.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		return err
	}
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// earlyExit explains the end of a process that had not become ready.
func (s *Server) earlyExit() error {
	tail := s.log.tail()
	err := fmt.Errorf("%w: it ended with %s%s", ErrStartFailed, s.exitStatus(), tail)
	if strings.Contains(tail, "address already in use") {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

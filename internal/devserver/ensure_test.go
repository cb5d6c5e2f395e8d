//go:build unix

package devserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/mcpx-go/mcpx/internal/devserver"
)

// hosted is a server that answers look-ups and refuses to be administered.
type hosted struct {
	workflowservice.WorkflowServiceClient
	operatorservice.OperatorServiceClient

	exists     bool
	retention  time.Duration
	attributes map[string]enumspb.IndexedValueType
	refusal    codes.Code
	busy       int // how many look-ups fail first
}

func (h *hosted) WorkflowService() workflowservice.WorkflowServiceClient { return h }
func (h *hosted) OperatorService() operatorservice.OperatorServiceClient { return h }

func (h *hosted) isBusy() bool {
	h.busy--
	return h.busy >= 0
}

func (h *hosted) refuse() error { return status.Error(h.refusal, "ask your administrator") }

func (h *hosted) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	switch {
	case h.isBusy():
		return nil, status.Error(codes.Unavailable, "starting")
	case !h.exists:
		return nil, status.Error(codes.NotFound, "no such namespace")
	}
	return &workflowservice.DescribeNamespaceResponse{
		Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(h.retention)},
	}, nil
}

func (h *hosted) RegisterNamespace(
	context.Context, *workflowservice.RegisterNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.RegisterNamespaceResponse, error) {
	return nil, h.refuse()
}

func (h *hosted) UpdateNamespace(
	context.Context, *workflowservice.UpdateNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.UpdateNamespaceResponse, error) {
	return nil, h.refuse()
}

func (h *hosted) ListSearchAttributes(
	context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption,
) (*operatorservice.ListSearchAttributesResponse, error) {
	if h.isBusy() {
		return nil, status.Error(codes.ResourceExhausted, "too many calls")
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: h.attributes}, nil
}

func (h *hosted) AddSearchAttributes(
	context.Context, *operatorservice.AddSearchAttributesRequest, ...grpc.CallOption,
) (*operatorservice.AddSearchAttributesResponse, error) {
	return nil, h.refuse()
}

func TestServerThatMayNotBeAdministeredIsUsedAsItIs(t *testing.T) {
	for _, test := range []struct {
		name    string
		server  hosted
		refused bool
	}{
		{"all is there", hosted{exists: true, retention: retention, attributes: attributes}, false},
		{"passing trouble", hosted{exists: true, retention: retention, attributes: attributes, busy: 3}, false},
		{"longer retention", hosted{exists: true, retention: 2 * retention, attributes: attributes}, false},
		{"no namespace", hosted{attributes: attributes}, true},
		{"short retention", hosted{exists: true, retention: time.Hour, attributes: attributes}, true},
		{"no attributes", hosted{exists: true, retention: retention}, true},
	} {
		for _, refusal := range []codes.Code{codes.PermissionDenied, codes.Unimplemented} {
			t.Run(test.name+"/"+refusal.String(), func(t *testing.T) {
				server := test.server
				server.refusal = refusal
				err := devserver.EnsureNamespace(t.Context(), &server, namespace, retention)
				if err == nil {
					err = devserver.EnsureSearchAttributes(t.Context(), &server, namespace, attributes)
				}
				if !test.refused {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, devserver.ErrNotPermitted)
				require.ErrorContains(t, err, namespace)
				require.ErrorContains(t, err, "ask your administrator")
			})
		}
	}
}

func TestOtherErrorsAreNotTakenForMissingRights(t *testing.T) {
	server := hosted{refusal: codes.InvalidArgument}
	err := devserver.EnsureNamespace(t.Context(), &server, namespace, retention)
	require.Error(t, err)
	require.NotErrorIs(t, err, devserver.ErrNotPermitted)
}

func TestEnsuringEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	server := hosted{busy: 1 << 30}
	err := devserver.EnsureNamespace(ctx, &server, namespace, retention)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "starting")
}

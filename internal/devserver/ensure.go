package devserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
)

// DefaultRetention is how long a namespace made here keeps closed workflows when nobody says otherwise. It is what
// Temporal's own tools take.
const DefaultRetention = 72 * time.Hour

const (
	// settleTime is how long the caches of a running server may take to see a change of a namespace.
	settleTime = 30 * time.Second
	ensureCall = 10 * time.Second
	firstPause = 20 * time.Millisecond
	maxPause   = 200 * time.Millisecond
)

// ErrNotPermitted says that the server does not let this client administer it, as most hosted ones do not: somebody who
// may has to make the namespace or register the attributes. What exists already can be used all the same.
var ErrNotPermitted = errors.New("not permitted on this Temporal server")

// ErrWrongType says that a search attribute exists with another type than the wanted one.
var ErrWrongType = errors.New("search attribute has another type")

// Services are the two interfaces of a Temporal server that are needed to prepare it. A Temporal client has them, and
// brings its credentials along.
type Services interface {
	WorkflowService() workflowservice.WorkflowServiceClient
	OperatorService() operatorservice.OperatorServiceClient
}

// EnsureNamespace makes the namespace where it is missing, and waits until it can be used. It raises the namespace's
// retention of closed workflows where that is shorter than wanted, and never shortens it. A zero retention leaves an
// existing namespace as it is and makes a new one with DefaultRetention.
//
// A raised retention holds for workflows that close after the server has noticed (some seconds).
//
// It returns ErrNotPermitted where the server refuses such changes, and nil where none is needed.
func EnsureNamespace(ctx context.Context, s Services, name string, retention time.Duration) error {
	have, err := describe(ctx, s, name)
	if isNotFound(err) {
		if err := register(ctx, s, name, retention); err != nil {
			return fmt.Errorf("make namespace %s: %w", name, err)
		}
		if err := awaitQuery(ctx, s, name, "", isNotFound); err != nil {
			return fmt.Errorf("namespace %s was made but cannot be used yet: %w", name, err)
		}
		have, err = describe(ctx, s, name)
	}
	if err != nil {
		return fmt.Errorf("look at namespace %s: %w", name, err)
	}
	if current := have.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); current < retention {
		if err := raise(ctx, s, name, retention); err != nil {
			return fmt.Errorf("raise the retention of namespace %s from %s to %s: %w", name, current, retention, err)
		}
	}
	return nil
}

func describe(ctx context.Context, s Services, name string) (response *workflowservice.DescribeNamespaceResponse, err error) {
	err = call(ctx, nil, func(ctx context.Context) error {
		response, err = s.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: name})
		return err
	})
	return response, err
}

func register(ctx context.Context, s Services, name string, retention time.Duration) error {
	if retention == 0 {
		retention = DefaultRetention
	}
	return call(ctx, nil, func(ctx context.Context) error {
		_, err := s.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        name,
			WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		})
		if _, exists := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); exists {
			return nil
		}
		return err
	})
}

// raise sets the retention. A server that has just made the namespace may not know it everywhere yet.
func raise(ctx context.Context, s Services, name string, retention time.Duration) error {
	return call(ctx, isNotFound, func(ctx context.Context) error {
		_, err := s.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: name,
			Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
		})
		return err
	})
}

// EnsureSearchAttributes registers the attributes that the namespace lacks, and returns when queries can use all of
// them. Those that exist already are left alone.
//
// It returns ErrWrongType where one exists with another type, and ErrNotPermitted where one is missing and the server
// refuses to add it.
func EnsureSearchAttributes(ctx context.Context, s Services, namespace string, want map[string]enumspb.IndexedValueType) error {
	if len(want) == 0 {
		return nil
	}
	missing, err := missingAttributes(ctx, s, namespace, want)
	if err != nil {
		return fmt.Errorf("look at the search attributes of namespace %s: %w", namespace, err)
	}
	if len(missing) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
	if err := addAttributes(ctx, s, namespace, missing); err != nil {
		return fmt.Errorf("register search attributes %s in namespace %s: %w", names, namespace, err)
	}
	for name := range missing {
		if err := awaitAttribute(ctx, s, namespace, name); err != nil {
			return fmt.Errorf("search attribute %s is registered in namespace %s but cannot be used yet: %w",
				name, namespace, err)
		}
	}
	return nil
}

// missingAttributes is the part of want that the namespace lacks.
func missingAttributes(
	ctx context.Context, s Services, namespace string, want map[string]enumspb.IndexedValueType,
) (map[string]enumspb.IndexedValueType, error) {
	var have map[string]enumspb.IndexedValueType
	err := call(ctx, isNotFound, func(ctx context.Context) error {
		response, err := s.OperatorService().ListSearchAttributes(ctx,
			&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		have = response.GetCustomAttributes()
		return err
	})
	if err != nil {
		return nil, err
	}
	missing := map[string]enumspb.IndexedValueType{}
	for name, kind := range want {
		switch found, ok := have[name]; {
		case !ok:
			missing[name] = kind
		case found != kind:
			return nil, fmt.Errorf("%w: %s is a %s, and must be a %s: remove it, or use another namespace",
				ErrWrongType, name, found, kind)
		}
	}
	return missing, nil
}

func addAttributes(
	ctx context.Context, s Services, namespace string, attributes map[string]enumspb.IndexedValueType,
) error {
	return call(ctx, isNotFound, func(ctx context.Context) error {
		_, err := s.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace:        namespace,
			SearchAttributes: attributes,
		})
		if _, exists := errors.AsType[*serviceerror.AlreadyExists](err); exists {
			return nil
		}
		return err
	})
}

// awaitAttribute waits until a query can name the attribute.
func awaitAttribute(ctx context.Context, s Services, namespace, name string) error {
	return awaitQuery(ctx, s, namespace, name+" IS NULL", func(err error) bool {
		_, unknown := errors.AsType[*serviceerror.InvalidArgument](err)
		return unknown || isNotFound(err)
	})
}

// awaitQuery waits until a query is understood: servers keep what they knew of a namespace for a while.
func awaitQuery(ctx context.Context, s Services, namespace, query string, notYet func(error) bool) error {
	return call(ctx, notYet, func(ctx context.Context) error {
		_, err := s.WorkflowService().CountWorkflowExecutions(ctx,
			&workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
		return err
	})
}

// call does one call, and repeats it, for settleTime at most, while its error is a passing one: the server is not
// ready, busy, or (with passing) has not noticed an earlier change. Errors come back as Temporal's types, those of an
// administrator's rights as ErrNotPermitted.
func call(ctx context.Context, passing func(error) bool, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	pause := firstPause
	for {
		err := attempt(ctx, do)
		if err == nil {
			return nil
		}
		if !isPassing(err) && (passing == nil || !passing(err)) {
			return permission(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (last answer: %w)", context.Cause(ctx), permission(err))
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
	}
}

func attempt(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, ensureCall)
	defer cancel()
	return serviceerror.FromStatus(serviceerror.ToStatus(do(ctx)))
}

func isPassing(err error) bool {
	switch serviceerror.ToStatus(err).Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted:
		return true
	default:
		return false
	}
}

func isNotFound(err error) bool {
	return err != nil && serviceerror.ToStatus(err).Code() == codes.NotFound
}

func permission(err error) error {
	switch serviceerror.ToStatus(err).Code() {
	case codes.PermissionDenied, codes.Unimplemented:
		return fmt.Errorf("%w: %w", ErrNotPermitted, err)
	default:
		return err
	}
}

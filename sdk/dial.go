package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc/codes"

	"github.com/mcpx-go/mcpx/contract"
)

// dialTimeout limits Dial where its context has no deadline.
const dialTimeout = 10 * time.Second

// Options say where Temporal is. What they leave open comes from Temporal's own variables (TEMPORAL_ADDRESS,
// TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS…) and the profiles of its temporal.toml, as for Temporal's own
// tools; then from their defaults.
type Options struct {
	// Address is host:port, by default localhost:7233.
	Address string
	// Namespace is by default contract.Namespace.
	Namespace string
	// Profile of temporal.toml; by default the one that TEMPORAL_PROFILE names, else "default".
	Profile string

	// Identity is how this process is called in histories, by default its process ID and host.
	Identity string
	// Logger gets what Temporal's client has to say; nil for nothing.
	Logger *slog.Logger

	// Prepare, where it is set, is called with the connection before the namespace is looked for: whoever is
	// responsible for the namespace makes it here.
	Prepare func(ctx context.Context, c client.Client, namespace string) error
}

// place is where a client looks for Temporal, for the messages that say so.
type place struct {
	address, namespace, identity string
}

// Dial connects to Temporal, and checks that the namespace is there.
//
// Errors to branch on: ErrUnavailable, ErrNamespaceMissing, ErrNotPermitted.
func Dial(ctx context.Context, o Options) (*Client, error) {
	options, err := o.temporal()
	if err != nil {
		return nil, err
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dialTimeout)
		defer cancel()
	}
	at := place{address: options.HostPort, namespace: options.Namespace, identity: options.Identity}
	if at.address == "" {
		at.address = client.DefaultHostPort
	}
	connection, err := client.DialContext(ctx, options)
	if err != nil {
		if refused(err) {
			return nil, at.wrap(ErrNotPermitted, err)
		}
		return nil, at.wrap(ErrUnavailable, err)
	}
	c := New(connection, options.Namespace)
	c.place, c.dialled = at, true
	if o.Prepare != nil {
		if err := o.Prepare(ctx, connection, options.Namespace); err != nil {
			c.Close()
			return nil, fmt.Errorf("prepare namespace %s at %s: %w", at.namespace, at.address, err)
		}
	}
	if err := c.checkNamespace(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// temporal are the options of Temporal's own client.
func (o Options) temporal() (client.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: o.Profile})
	if err != nil {
		if o.Profile != "" {
			return client.Options{}, fmt.Errorf("configuration of Temporal, profile %q: %w", o.Profile, err)
		}
		return client.Options{}, fmt.Errorf("configuration of Temporal (TEMPORAL_* variables and temporal.toml): %w", err)
	}
	if o.Address != "" {
		options.HostPort = o.Address
	}
	if o.Namespace != "" {
		options.Namespace = o.Namespace
	}
	if options.Namespace == "" {
		options.Namespace = contract.Namespace
	}
	if options.Identity = o.Identity; options.Identity == "" {
		options.Identity = processIdentity()
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	options.Logger = log.NewStructuredLogger(logger)
	return options, nil
}

// processIdentity is how Temporal's own client calls a process that has no other name.
func processIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s", os.Getpid(), host)
}

// checkNamespace looks for the namespace. A server that does not let this client look is believed to have it.
func (c *Client) checkNamespace(ctx context.Context) error {
	_, err := call(ctx, func(ctx context.Context) (*workflowservice.DescribeNamespaceResponse, error) {
		return c.service().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.namespace})
	})
	switch {
	case err == nil, code(err) == codes.Unimplemented:
		return nil
	case isNamespaceMissing(err):
		return c.place.missing(err)
	case refused(err):
		return c.place.wrap(ErrNotPermitted, err)
	case isPassing(err):
		return c.place.wrap(ErrUnavailable, err)
	}
	return fmt.Errorf("look for namespace %s at %s: %w", c.namespace, c.place.address, err)
}

func isNamespaceMissing(err error) bool {
	_, missing := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return missing
}

func refused(err error) bool {
	return code(err) == codes.PermissionDenied || code(err) == codes.Unauthenticated
}

// missing is the error for a namespace that is not there.
func (p place) missing(err error) error {
	return fmt.Errorf("%w: Temporal%s has no namespace %q. A worker makes it (`mcpx worker`, or `mcpx dev`), or create it with "+
		"`temporal operator namespace create --namespace %s --retention 720h`, where the retention covers the longest ttl (%w)",
		ErrNamespaceMissing, p.at(), p.namespace, p.namespace, err)
}

// wrap is an error of the connection, with what to do about it.
func (p place) wrap(kind, err error) error {
	if errors.Is(kind, ErrNotPermitted) {
		return fmt.Errorf("%w%s, namespace %q: check TEMPORAL_API_KEY, the TLS settings and the namespace's permissions (%w)",
			kind, p.at(), p.namespace, err)
	}
	return fmt.Errorf("%w%s: `mcpx dev` starts one, TEMPORAL_ADDRESS or a profile names another (%w)", kind, p.at(), err)
}

func (p place) at() string {
	if p.address == "" {
		return ""
	}
	return " at " + p.address
}

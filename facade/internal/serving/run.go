package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// noAddress is the address that turns a server off.
const noAddress = "0"

// AdditionalExitTime is the additional time of an exit after the handlers have had theirs: for code that ignores its
// context, and for the last writes of webhooks. It equals controller-runtime's default for the whole exit.
const AdditionalExitTime = 30 * time.Second

// Options configure the run of one operator.
type Options struct {
	// Name is the name of the operator. It is also its user agent.
	Name string
	// Log gets all log lines of the manager.
	Log logr.Logger
	// Cluster selects the cluster of the login.
	Cluster ClusterConfig
	// Metrics configures the server of the metrics.
	Metrics Metrics
	// HealthProbeBindAddress is the address of the health probes. Empty and "0" turn the server off.
	HealthProbeBindAddress string
	// Liveness is the address of the results of the probes; nil serves none.
	Liveness *LivenessAddress
	// Embedded is true if the process contains more than this operator. Other controllers may have the same names then.
	Embedded bool
	// SetUp adds the operator to the manager. The function returns the current default namespace of the credentials, or
	// "".
	SetUp func(m ctrl.Manager, defaultNamespace func() string) error
}

// Run serves until the context ends, which is not an error. It starts the endpoint of the probes first, before the
// login.
func Run(ctx context.Context, settings ManagerSettings, o Options) error {
	if o.Liveness != nil {
		endpoint, err := ServeLiveness(*o.Liveness, settings.Probe)
		if err != nil {
			return err
		}
		defer endpoint.Close()
	}
	// Deferred calls run in reverse: first the probes end, then their endpoint.
	if settings.StopProbes != nil {
		defer settings.StopProbes()
	}
	// Neither this nor the options depend on the connection, so their errors precede the login.
	reads, err := NewCachedReads(settings.Scheme, settings.CachedReads)
	if err != nil {
		return err
	}
	options := o.managerOptions(settings)
	reads.ConfigureManager(&options)
	ctx = logf.IntoContext(ctx, o.Log.WithName(o.Name))
	return o.withAuthorizedConnection(ctx, settings, func(ctx context.Context, to *credentials.Connection) error {
		return o.runManager(ctx, to, options)
	})
}

// runManager runs the operator in its own manager.
func (o Options) runManager(ctx context.Context, to *credentials.Connection, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(to.Config, o.Name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", o.Name, err)
	}
	if err := o.SetUp(m, to.DefaultNamespace); err != nil {
		return err
	}
	// A manager can return the end of its context as an error, which is not a failure.
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", o.Name, err)
	}
	return nil
}

// managerOptions returns the options of the manager.
func (o Options) managerOptions(settings ManagerSettings) ctrl.Options {
	options := ctrl.Options{
		Scheme: settings.Scheme, Logger: o.Log,
		Metrics:                 o.Metrics.serverOptions(o.Log.WithName(o.Name)),
		HealthProbeBindAddress:  cmp.Or(o.HealthProbeBindAddress, noAddress),
		WebhookServer:           settings.WebhookServer,
		GracefulShutdownTimeout: ptr.To(AdditionalExitTime + max(0, settings.ExitTimeout)),
	}
	// controller-runtime validates that names are unique in the process.
	if o.Embedded {
		options.Controller.SkipNameValidation = ptr.To(true)
	}
	if len(settings.CachedNamespaces) > 0 {
		// The cache must not list namespaces that the operator may not read.
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range settings.CachedNamespaces {
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return options
}

package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// none is the address of what is not served.
const none = "0"

// remainingExit is how long the manager waits for all that is left when handlers have had their time: what ignores its
// context, and the last writes of webhooks. It is what controller-runtime has for the whole exit.
const remainingExit = 30 * time.Second

// Options say how one operator is run.
type Options struct {
	// Name is the operator's; it is also its user agent.
	Name string
	// Log gets all lines of the manager.
	Log logr.Logger
	// Cluster is where the cluster is described, for the login.
	Cluster Cluster
	// Metrics and Health are the addresses of the manager's servers; empty and "0" are off.
	Metrics, Health string
	// Liveness is where the results of the probes are served; nil is nowhere.
	Liveness *LivenessAddress
	// Embedded is for an operator that is not the only thing in its process: others may have controllers of the same
	// names.
	Embedded bool
	// SetUp adds the operator to the manager. The default namespace is that of the credentials, if they have one, at
	// any time.
	SetUp func(m ctrl.Manager, defaultNamespace func() string) error
}

// Run serves until the context ends, which is no error.
func Run(ctx context.Context, settings Settings, o Options) error {
	if o.Liveness != nil {
		endpoint, err := ServeLiveness(*o.Liveness, settings.Probe)
		if err != nil {
			return err
		}
		defer endpoint.Close()
	}
	if settings.StopProbes != nil {
		defer settings.StopProbes()
	}
	reads, err := NewCachedReads(settings.Scheme, settings.CachedReads)
	if err != nil {
		return err
	}
	options := o.manager(settings)
	reads.Configure(&options)
	ctx = logf.IntoContext(ctx, o.Log.WithName(o.Name))
	return o.authorized(ctx, settings, func(ctx context.Context, to *credentials.Connection) error {
		return o.serve(ctx, to, options)
	})
}

// serve runs the operator in a manager of its own.
func (o Options) serve(ctx context.Context, to *credentials.Connection, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(to.Config, o.Name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", o.Name, err)
	}
	if err := o.SetUp(m, to.DefaultNamespace); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", o.Name, err)
	}
	return nil
}

func (o Options) manager(settings Settings) ctrl.Options {
	options := ctrl.Options{
		Scheme: settings.Scheme, Logger: o.Log, Metrics: metricsserver.Options{BindAddress: cmp.Or(o.Metrics, none)},
		HealthProbeBindAddress:  cmp.Or(o.Health, none),
		WebhookServer:           settings.WebhookServer,
		GracefulShutdownTimeout: ptr.To(remainingExit + max(0, settings.ExitTimeout)),
	}
	if o.Embedded {
		options.Controller.SkipNameValidation = ptr.To(true)
	}
	if len(settings.CachedNamespaces) > 0 {
		// What is read from the cache must not ask for more than the operator may see.
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range settings.CachedNamespaces {
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return options
}

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
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// noAddress is the address that turns a server off.
const noAddress = "0"

// AdditionalExitTime is the additional time of an exit after the handlers have had theirs: for code that ignores its
// context, and for the last writes of webhooks. It equals controller-runtime's default for the whole exit.
const AdditionalExitTime = 30 * time.Second

// WarnAboutScope warns that the whole cluster is served although this was not requested. Kopf warns as well.
func WarnAboutScope(log logr.Logger) {
	logging.Warn(log, "Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or "+
		"-n to choose namespaces")
}

// serve serves until the context ends. It starts the endpoint of the probes first, before the login.
func (p Process) serve(ctx context.Context, o RunOptions) error {
	// The startup handlers may have changed any of the settings, and can select namespaces as well.
	settings, err := p.settingsFor(o)
	if err != nil {
		return err
	}
	if !o.Embedded && !o.HasScope && !o.DeletionsOnly && len(settings.Patterns) == 0 {
		WarnAboutScope(o.ManagerLog)
	}
	if o.Liveness != nil {
		endpoint, err := ServeLiveness(o.Liveness, settings.Probe)
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
	log := o.ManagerLog.WithName(p.Name)
	options := o.managerOptions(settings, log)
	reads.ConfigureManager(&options)
	return p.withConnection(logf.IntoContext(ctx, log), settings, o.Cluster,
		func(ctx context.Context, to *credentials.Connection) error { return p.runManager(ctx, to, options) })
}

// runManager runs the operator in its own manager.
func (p Process) runManager(ctx context.Context, to *credentials.Connection, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(to.Config, p.Name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", p.Name, err)
	}
	if err := p.SetupWithManager(m, to.DefaultNamespace); err != nil {
		return err
	}
	// A manager can return the end of its context as an error, which is not a failure.
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", p.Name, err)
	}
	return nil
}

// managerOptions returns the options of the manager.
func (o RunOptions) managerOptions(settings ManagerSettings, log logr.Logger) ctrl.Options {
	options := ctrl.Options{
		Scheme: settings.Scheme, Logger: o.ManagerLog,
		Metrics:                 o.Metrics.serverOptions(log),
		HealthProbeBindAddress:  cmp.Or(o.HealthProbeBindAddress, noAddress),
		WebhookServer:           settings.WebhookServer,
		GracefulShutdownTimeout: ptr.To(AdditionalExitTime + max(0, settings.ExitTimeout)),
	}
	// controller-runtime validates that names are unique in the process.
	if o.Embedded {
		options.Controller.SkipNameValidation = ptr.To(true)
	}
	// A pattern can match any namespace, so only plain names limit the cache. It must not list namespaces that the
	// operator may not read.
	if names, _ := settings.Patterns.PlainNames(); len(names) > 0 {
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range names {
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return options
}

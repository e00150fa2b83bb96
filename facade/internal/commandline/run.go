package commandline

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/cachedreads"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/liveness"
)

// run is the command: it serves until its context ends. It checks all that needs no cluster before it looks for one.
func (r *runner) run(cmd *cobra.Command, _ []string) error {
	if err := r.base.check(cmd, func() error { return r.check(cmd) }); err != nil {
		return err
	}
	operator := r.base.program.Operator
	settings, err := operator.Settings()
	if err != nil {
		return err
	}
	log, err := r.base.logger(cmd, settings.LogHandler)
	if err != nil {
		return err
	}
	namespaces, said := r.base.scope.choose(settings.Namespaces)
	given := Given{Namespaces: namespaces, Scoped: r.base.scope.given(), Peering: r.peering.given(cmd)}
	return operator.Around(cmd.Context(), given, func() error {
		// The startup may have changed anything.
		settings, err := operator.Settings()
		if err != nil {
			return err
		}
		if !said && len(settings.Namespaces) == 0 {
			hintAtScope(log)
		}
		return r.connect(cmd.Context(), settings, log)
	})
}

// connect makes a manager for the cluster that is meant, and serves.
func (r *runner) connect(ctx context.Context, settings Settings, log logr.Logger) error {
	if r.liveness != "" {
		endpoint, err := liveness.Serve(r.endpoint, settings.Probe)
		if err != nil {
			return err
		}
		defer endpoint.Close()
	}
	if settings.StopProbes != nil {
		defer settings.StopProbes()
	}
	reads, err := cachedreads.New(settings.Scheme, settings.CachedReads)
	if err != nil {
		return err
	}
	options := r.managerOptions(settings.Scheme, settings.CachedNamespaces, log)
	reads.Configure(&options)
	options.WebhookServer = settings.WebhookServer
	ctx = logf.IntoContext(ctx, log.WithName(r.base.program.Name))
	return r.authorized(ctx, settings, func(ctx context.Context, to *credentials.Connection) error {
		return r.serve(ctx, to, options)
	})
}

// serve runs the operator in a manager of its own.
func (r *runner) serve(ctx context.Context, to *credentials.Connection, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(to.Config, r.base.program.Name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", r.base.program.Name, err)
	}
	if err := r.base.program.Operator.SetupWithManager(m, to.DefaultNamespace); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", r.base.program.Name, err)
	}
	return nil
}

func (r *runner) managerOptions(scheme *runtime.Scheme, namespaces []string, log logr.Logger) ctrl.Options {
	options := ctrl.Options{
		Scheme: scheme, Logger: log, Metrics: metricsserver.Options{BindAddress: r.metrics},
		HealthProbeBindAddress: r.health,
	}
	if len(namespaces) > 0 {
		// What is read from the cache must not ask for more than the operator may see.
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range namespaces {
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return options
}

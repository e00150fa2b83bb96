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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// run is the command: it serves until its context ends. It checks all that needs no cluster before it looks for one.
func (r *runner) run(cmd *cobra.Command, _ []string) error {
	if r.program.Err != nil {
		return r.program.Err
	}
	if err := r.readEnvironment(cmd); err != nil {
		return err
	}
	if err := r.checkFlags(cmd); err != nil {
		return r.explained(err)
	}
	settings, err := r.program.Operator.Settings()
	if err != nil {
		return err
	}
	log, err := r.log.logger(cmd, r.program.Name, settings.LogHandler)
	if err != nil {
		return r.explained(err)
	}
	r.log.use(log)
	namespaces, said := r.scope(settings.Namespaces)
	return r.program.Operator.Around(cmd.Context(), namespaces, func() error {
		// The startup may have changed anything.
		settings, err := r.program.Operator.Settings()
		if err != nil {
			return err
		}
		if !said && len(settings.Namespaces) == 0 {
			logging.Warn(log, "Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or "+
				"-n to choose namespaces")
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
	options := r.managerOptions(settings.Scheme, settings.Namespaces, log)
	reads.Configure(&options)
	ctx = logf.IntoContext(ctx, log.WithName(r.program.Name))
	return r.authorized(ctx, settings, func(ctx context.Context, to *credentials.Connection) error {
		return r.serve(ctx, to, options)
	})
}

// serve runs the operator in a manager of its own.
func (r *runner) serve(ctx context.Context, to *credentials.Connection, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(to.Config, r.program.Name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", r.program.Name, err)
	}
	if err := r.program.Operator.SetupWithManager(m, to.DefaultNamespace); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", r.program.Name, err)
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

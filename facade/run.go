package facade

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// run is the command: it serves until its context ends. What needs no cluster is checked before one is looked for.
func (r *runner) run(cmd *cobra.Command, _ []string) error {
	if !r.op.made() {
		return errNoOperator
	}
	if err := r.settle(cmd); err != nil {
		return err
	}
	scheme, err := r.op.scheme()
	if err != nil {
		return err
	}
	config, err := loadConfig(r.kubeconfig)
	if err != nil {
		return err
	}
	names, hint := r.scope()
	if hint != "" {
		cmd.PrintErrln(hint)
	}
	r.op.settings.namespaces = names
	log := newLogger(cmd.ErrOrStderr(), r.logging())
	ctrl.SetLogger(log)
	setKlog(log, r.debug)
	return r.serve(cmd.Context(), config, r.managerOptions(scheme, log))
}

func (r *runner) serve(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(config, r.op.name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", r.op.name, err)
	}
	if err := r.op.SetupWithManager(m); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", r.op.name, err)
	}
	return nil
}

func (r *runner) managerOptions(scheme *runtime.Scheme, log logr.Logger) ctrl.Options {
	options := ctrl.Options{Scheme: scheme, Logger: log, Metrics: metricsserver.Options{BindAddress: r.metrics}}
	if len(r.op.settings.namespaces) > 0 {
		// The clients of handlers read through this cache: it must not ask for more than the operator may see.
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range r.op.settings.namespaces {
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return options
}

// scheme makes the scheme of an operator without a project around it. All mistakes of registrations come out here.
func (op *Operator) scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding the types of client-go to the scheme: %w", err)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if err := op.fillScheme(scheme); err != nil {
		return nil, err
	}
	if _, err := op.plan(scheme); err != nil {
		return nil, err
	}
	return scheme, nil
}

package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

// run is the command: it serves until its context ends. It checks all that needs no cluster before it looks for one.
func (r *runner) run(cmd *cobra.Command, _ []string) error {
	if r.program.Err != nil {
		return r.program.Err
	}
	if err := r.checkFlags(cmd); err != nil {
		return err
	}
	scheme, err := r.program.Operator.Scheme()
	if err != nil {
		return err
	}
	config, err := LoadConfig(r.kubeconfig)
	if err != nil {
		return err
	}
	namespaces, hint := r.scope()
	if hint != "" {
		cmd.PrintErrln(hint)
	}
	log := console.New(cmd.ErrOrStderr(), r.logOptions())
	ctrl.SetLogger(log)
	console.ForwardKlog(log, r.debug)
	return r.serve(cmd.Context(), config, namespaces, r.managerOptions(scheme, namespaces, log))
}

// serve runs the operator in a manager of its own.
func (r *runner) serve(ctx context.Context, config *rest.Config, namespaces []string, options ctrl.Options) error {
	m, err := ctrl.NewManager(rest.AddUserAgent(config, r.program.Name), options)
	if err != nil {
		return fmt.Errorf("starting operator %q: %w", r.program.Name, err)
	}
	if err := r.program.Operator.SetupWithManager(m, namespaces); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return fmt.Errorf("running operator %q: %w", r.program.Name, err)
	}
	return nil
}

func (r *runner) managerOptions(scheme *runtime.Scheme, namespaces []string, log logr.Logger) ctrl.Options {
	options := ctrl.Options{Scheme: scheme, Logger: log, Metrics: metricsserver.Options{BindAddress: r.metrics}}
	if len(namespaces) > 0 {
		// The clients of handlers read through this cache: it must not ask for more than the operator may see.
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range namespaces {
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return options
}

var errNoCluster = errors.New(
	"no cluster is configured: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config as for kubectl; inside a " +
		"cluster, the pod needs a service account",
)

// LoadConfig finds the cluster: the given file, else $KUBECONFIG, else the cluster around the process, else
// ~/.kube/config.
func LoadConfig(path string) (*rest.Config, error) {
	config, err := findConfig(path)
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errNoCluster
	case err != nil:
		return nil, fmt.Errorf("reading the configuration of the cluster: %w", err)
	}
	// The server's own fairness is better than a limit on this side.
	config.QPS = -1
	return config, nil
}

func findConfig(path string) (*rest.Config, error) {
	if path == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
}

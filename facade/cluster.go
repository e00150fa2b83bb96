package facade

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var errNoCluster = errors.New(
	"no cluster is configured: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config as for kubectl; inside a " +
		"cluster, the pod needs a service account",
)

// loadConfig finds the cluster: the given file, else $KUBECONFIG, else the cluster around the process, else
// ~/.kube/config.
func loadConfig(path string) (*rest.Config, error) {
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

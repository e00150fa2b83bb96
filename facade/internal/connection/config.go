package connection

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

var errNoCluster = errors.New(
	"no cluster is configured: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config as for kubectl; inside a " +
		"cluster, the pod needs a service account",
)

// Login finds the cluster: the given file, else $KUBECONFIG, else the cluster around the process, else ~/.kube/config.
// With a context, it is the one of that name in these files; without, the current one. It is how an operator logs in
// that has no handlers for that.
func Login(path, context string) (*credentials.Info, error) {
	config, namespace, err := find(path, context)
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.Join(missing(path), errNoCluster)
	case err != nil:
		return nil, fmt.Errorf("reading the configuration of the cluster: %w", err)
	}
	return &credentials.Info{Config: config, DefaultNamespace: namespace}, nil
}

// find gives the namespace of the configuration that counts as well.
func find(path, context string) (config *rest.Config, namespace string, err error) {
	if path == "" && context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, around.namespace(), nil
		}
	}
	files := loader(path, context)
	if config, err = files.ClientConfig(); err != nil {
		return nil, "", err
	}
	raw, err := files.RawConfig()
	if said := raw.Contexts[cmp.Or(context, raw.CurrentContext)]; said != nil {
		return config, said.Namespace, err
	}
	return config, around.namespace(), err // the files are empty, so it is the cluster around the process
}

// loader reads a kubeconfig file, or those of the environment if path is empty.
func loader(path, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = path, false // the error names them
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{CurrentContext: context},
	)
}

// Contexts returns the names of the contexts in a kubeconfig file, or in those of the environment, sorted. It returns
// nothing if they cannot be read.
func Contexts(path string) []string {
	files, err := loader(path, "").RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(files.Contexts))
}

// missing names the files of $KUBECONFIG that do not exist; nil if there are none. A file that is given has been read,
// or is an error already.
func missing(path string) error {
	if path != "" {
		return nil
	}
	files := slices.DeleteFunc(
		filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), func(file string) bool {
			_, err := os.Stat(file)
			return file == "" || err == nil
		},
	)
	if len(files) == 0 {
		return nil
	}
	return fmt.Errorf("KUBECONFIG names files that do not exist: %s", strings.Join(files, ", "))
}

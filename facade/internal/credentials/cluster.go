package credentials

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
)

var errNoCluster = errors.New(
	"no cluster is configured: give --kubeconfig, set KUBECONFIG, or create ~/.kube/config as for kubectl; inside a " +
		"cluster, the pod needs a service account",
)

// Login returns the credentials of the cluster to connect to. It uses the given file, else $KUBECONFIG, else the
// service account of the pod, else ~/.kube/config. A context selects the entry of that name in these files; without it,
// the current context is used. This is the login of operators without login handlers.
func Login(path, context string) (*Info, error) {
	config, namespace, err := findConfig(path, context)
	switch {
	// The error lists all ways to configure a cluster, as the user may have meant any of them.
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.Join(missingFilesError(path), errNoCluster)
	case err != nil:
		return nil, fmt.Errorf("reading the configuration of the cluster: %w", err)
	}
	return &Info{Config: config, DefaultNamespace: namespace}, nil
}

// findConfig returns the configuration and its default namespace.
func findConfig(path, context string) (config *rest.Config, namespace string, err error) {
	// The pod's service account counts only if the user has not selected any file or context. This order is that of
	// controller-runtime, and differs from client-go's, which prefers ~/.kube/config.
	if path == "" && context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, mountedFiles.readNamespace(), nil
		}
	}
	files := kubeconfigLoader(path, context)
	if config, err = files.ClientConfig(); err != nil {
		return nil, "", err
	}
	raw, err := files.RawConfig()
	if said := raw.Contexts[cmp.Or(context, raw.CurrentContext)]; said != nil {
		return config, said.Namespace, err
	}
	return config, mountedFiles.readNamespace(), err // the files are empty, so client-go used the service account
}

// kubeconfigLoader returns a lazy reader of a kubeconfig file, or of the files of the environment if path is empty.
func kubeconfigLoader(path, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = path, false // the error of Login names missing files
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{CurrentContext: context},
	)
}

// ContextNames returns the sorted names of the contexts in a kubeconfig file, or in the files of the environment. It is
// for shell completion, so unreadable files yield no names and no error.
func ContextNames(path string) []string {
	files, err := kubeconfigLoader(path, "").RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(files.Contexts))
}

// missingFilesError returns an error with the files of $KUBECONFIG that do not exist, or nil. Client-go ignores these
// files silently. A file that is given by path was read before, or its absence is an error already.
func missingFilesError(path string) error {
	if path != "" {
		return nil
	}
	// KUBECONFIG is a list of paths, like PATH.
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

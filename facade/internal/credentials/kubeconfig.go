package credentials

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// These are the priorities of credentials without an explicit one. Kopf uses the same values.
const (
	kubeconfigPriority     = 10
	serviceAccountPriority = 20
)

// FromKubeconfig returns the credentials of the file, else of the files in $KUBECONFIG, else of ~/.kube/config. It
// returns nil if none of them exists. If several files define a name, the first definition wins. Without a context, the
// current context is used.
func FromKubeconfig(path, context string) (*Info, error) {
	raw, err := kubeconfigLoader(path, context).RawConfig()
	name := cmp.Or(context, raw.CurrentContext)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	case api.IsConfigEmpty(&raw):
		return nil, nil //nolint:nilnil // a missing file is no error
	case name == "":
		return nil, errors.New("reading the kubeconfig: it has no current-context")
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveClientConfig(raw, name, overrides, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// Programs like gcloud store the token in the entry of an auth plugin. Client-go no longer has these plugins, so
	// the token is used directly.
	if provider := config.AuthProvider; provider != nil && provider.Config["access-token"] != "" {
		config.BearerToken, config.AuthProvider = provider.Config["access-token"], nil
	}
	info, said := infoOf(config), raw.Contexts[name]
	info.Priority, info.DefaultNamespace = kubeconfigPriority, said.Namespace
	if cluster := raw.Clusters[said.Cluster]; cluster != nil {
		info.ProxyURL = cluster.ProxyURL
	}
	return info, nil
}

// infoOf returns the credentials of a configuration as single fields. If the fields cannot express it completely, the
// configuration itself is added.
func infoOf(config *rest.Config) *Info {
	info := &Info{
		Server: config.Host, CAPath: config.CAFile, CAData: config.CAData, Insecure: config.Insecure,
		Username: config.Username, Password: config.Password, Token: config.BearerToken,
		CertificatePath: config.CertFile, CertificateData: config.CertData,
		PrivateKeyPath: config.KeyFile, PrivateKeyData: config.KeyData,
	}
	if len(info.CAData) > 0 {
		info.CAPath = "" // client-go prefers the data as well
	}
	// These sources renew the token, so client-go must keep reading them.
	renewed := config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != ""
	if renewed {
		info.Token = "" // fields take precedence, but this token expires soon
	}
	if renewed || config.ServerName != "" || config.Impersonate.UserName != "" || config.DisableCompression {
		info.Config = config
	}
	return info
}

// podFiles is the source of the credentials that Kubernetes mounts into a pod. Tests replace it by other files.
type podFiles struct {
	loadConfig    func() (*rest.Config, error)
	namespaceFile string // contains the namespace
}

var mountedFiles = podFiles{rest.InClusterConfig, "/var/run/secrets/kubernetes.io/serviceaccount/namespace"}

// PodNamespace returns the namespace of the current pod; empty outside of a cluster.
func PodNamespace() string { return mountedFiles.readNamespace() }

// FromServiceAccount returns the credentials of the current pod, or nil without a service account. Client-go reads the
// token file again periodically, because the kubelet rotates it.
func FromServiceAccount() (*Info, error) { return mountedFiles.serviceAccount() }

// serviceAccount returns nil without an error outside of a cluster, and in a pod without a mounted token.
func (p podFiles) serviceAccount() (*Info, error) {
	config, err := p.loadConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster), errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // a pod can do without, which is no error
	case err != nil:
		return nil, fmt.Errorf("reading the service account: %w", err)
	}
	info := infoOf(config)
	info.Priority, info.DefaultNamespace = serviceAccountPriority, p.readNamespace()
	return info, nil
}

// readNamespace returns the namespace of the pod; empty if the file cannot be read.
func (p podFiles) readNamespace() string {
	data, err := os.ReadFile(p.namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

package connection

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// The priorities of the credentials that nobody has given a priority. Kopf has the same.
const (
	kubeconfigPriority     = 10
	serviceAccountPriority = 20
)

// Kubeconfig returns the credentials of the file, else of those in $KUBECONFIG, else of ~/.kube/config; nil if none of
// them exists. If several define a name, the first one counts. Without a context, it is the current one.
func Kubeconfig(path, context string) (*credentials.Info, error) {
	raw, err := loader(path, context).RawConfig()
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
	if provider := config.AuthProvider; provider != nil && provider.Config["access-token"] != "" {
		// Programs like gcloud leave the token there, for plugins that client-go does not have any more.
		config.BearerToken, config.AuthProvider = provider.Config["access-token"], nil
	}
	info, said := of(config), raw.Contexts[name]
	info.Priority, info.DefaultNamespace = kubeconfigPriority, said.Namespace
	if cluster := raw.Clusters[said.Cluster]; cluster != nil {
		info.ProxyURL = cluster.ProxyURL
	}
	return info, nil
}

// of has the fields that say all of the configuration, or the configuration itself beside them if they do not.
func of(config *rest.Config) *credentials.Info {
	info := &credentials.Info{
		Server: config.Host, CAPath: config.CAFile, CAData: config.CAData, Insecure: config.Insecure,
		Username: config.Username, Password: config.Password, Token: config.BearerToken,
		CertificatePath: config.CertFile, CertificateData: config.CertData,
		PrivateKeyPath: config.KeyFile, PrivateKeyData: config.KeyData,
	}
	if len(info.CAData) > 0 {
		info.CAPath = "" // as client-go takes it
	}
	renewed := config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != ""
	if renewed {
		info.Token = "" // the fields win, but this one is outdated soon
	}
	if renewed || config.ServerName != "" || config.Impersonate.UserName != "" || config.DisableCompression {
		info.Config = config
	}
	return info
}

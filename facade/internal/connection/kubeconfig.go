package connection

import (
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

// Kubeconfig gives the credentials of the file, else of those in $KUBECONFIG, else of ~/.kube/config; nil if none of
// them exists. Of several, the first mention of a name wins. Without a context, it is the current one.
func Kubeconfig(path, context string) (*credentials.Info, error) {
	merged, err := rules(path).Load()
	if err == nil && context != "" && !api.IsConfigEmpty(merged) {
		merged.CurrentContext = context
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	case api.IsConfigEmpty(merged):
		return nil, nil //nolint:nilnil // there is none, which is no error
	case context != "" && merged.Contexts[context] == nil:
		return nil, fmt.Errorf("reading the kubeconfig: context %q does not exist", context)
	case merged.CurrentContext == "":
		return nil, errors.New("reading the kubeconfig: it has no current-context")
	}
	said := merged.Contexts[merged.CurrentContext]
	token := takeToken(merged, said)
	config, err := clientcmd.NewDefaultClientConfig(*merged, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	info := of(config)
	info.Priority, info.DefaultNamespace = kubeconfigPriority, said.Namespace
	if token != "" {
		info.Token = token
	}
	if cluster := merged.Clusters[said.Cluster]; cluster != nil {
		info.ProxyURL = cluster.ProxyURL
	}
	return info, nil
}

// takeToken takes the token that a program like gcloud has left in the file: the plugins for them are gone.
func takeToken(merged *api.Config, said *api.Context) string {
	if said == nil {
		return "" // client-go says so
	}
	user := merged.AuthInfos[said.AuthInfo]
	if user == nil || user.AuthProvider == nil {
		return ""
	}
	token := user.AuthProvider.Config["access-token"]
	if token != "" {
		user.AuthProvider = nil
	}
	return token
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

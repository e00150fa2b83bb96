package tunnels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errUnknownCluster is the error for an unknown cluster without another tunnel.
var errUnknownCluster = errors.New("the cluster is none of k3d, minikube and Docker Desktop, so it is not known by " +
	"which name it finds this machine: say so by a URL, or lead there by a tunnel")

// Detecting is the tunnel from a cluster on this machine. It finds the name that the cluster has for the machine, and
// opens nothing. The server must listen on all addresses. Kopf: WebhookAutoServer, WebhookAutoTunnel, WebhookK3dServer,
// WebhookMinikubeServer, WebhookDockerDesktopServer.
type Detecting struct {
	// Config and HTTPClient access the API server, whose certificate and version identify the cluster.
	Config     *rest.Config
	HTTPClient *http.Client
	// Otherwise is the tunnel for other clusters. If it is nil, another cluster is a reconcile.TerminalError.
	Otherwise Tunnel
}

// DetectableHosts returns the names of this machine in all known clusters. The certificate of the server needs them.
func DetectableHosts() (hosts []string) {
	for _, cluster := range developmentClusters {
		hosts = append(hosts, cluster.host)
	}
	return hosts
}

// Run implements [Tunnel].
func (d Detecting) Run(
	ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig),
) error {
	host, err := d.detectHost(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("finding out which cluster it is: %w", err)
	case host == "" && d.Otherwise == nil:
		// The cluster does not change, so retries cannot help.
		return reconcile.TerminalError(errUnknownCluster)
	case host == "":
		return d.Otherwise.Run(ctx, to, told)
	}
	_, text, err := net.SplitHostPort(to.Address)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("reading the address of the webhook server: %w", err))
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("reading the port of the webhook server: %w", err))
	}
	// The address does not change either. Only the port comes from the local server.
	return Fixed(URL("https", host, port, "")).Run(ctx, to, told)
}

// detectHost returns the name of this machine in the cluster, or "" for an unknown cluster.
func (d Detecting) detectHost(ctx context.Context) (string, error) {
	certificate, err := Certificate(ctx, d.Config)
	if err != nil {
		return "", err
	}
	// Most clusters are identified by the certificate, without another request.
	if host := HostFor(certificate, ""); host != "" {
		return host, nil
	}
	// The API server can have any other certificate, so its version is read, too.
	client, err := discovery.NewDiscoveryClientForConfigAndClient(d.Config, d.HTTPClient)
	if err != nil {
		return "", fmt.Errorf("making the discovery client: %w", err)
	}
	data, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("asking for the version: %w", err)
	}
	var known version.Info
	if err := json.Unmarshal(data, &known); err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return HostFor(certificate, known.GitVersion), nil
}

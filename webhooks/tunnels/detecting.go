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

// errElsewhere is a cluster that nobody has said a way from.
var errElsewhere = errors.New("the cluster is none of k3d, minikube and Docker Desktop, so it is not known by which " +
	"name it finds this machine: say so by a URL, or lead there by a tunnel")

// Detecting is the way from a cluster on this machine, by the name that it has for the machine: nothing is opened for
// it, but the server must listen on all addresses. Kopf: WebhookAutoServer, WebhookAutoTunnel, WebhookK3dServer,
// WebhookMinikubeServer, WebhookDockerDesktopServer.
type Detecting struct {
	// Config and HTTPClient are for the API server, which is asked what it is.
	Config     *rest.Config
	HTTPClient *http.Client
	// Otherwise is the way from any other cluster. With none, another cluster is a reconcile.TerminalError.
	Otherwise Tunnel
}

// DetectableHosts are all names that clusters on this machine have for it, for the certificate of the server.
func DetectableHosts() (hosts []string) {
	for _, cluster := range clusters {
		hosts = append(hosts, cluster.host)
	}
	return hosts
}

// Run implements [Tunnel].
func (d Detecting) Run(
	ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig),
) error {
	host, err := d.host(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("finding out which cluster it is: %w", err)
	case host == "" && d.Otherwise == nil:
		return reconcile.TerminalError(errElsewhere)
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
	return Fixed(URL("https", host, port, "")).Run(ctx, to, told)
}

// host is the name that the cluster has for this machine; empty if it is none of those that are known.
func (d Detecting) host(ctx context.Context) (string, error) {
	certificate, err := Certificate(ctx, d.Config)
	if err != nil {
		return "", err
	}
	if host := HostFor(certificate, ""); host != "" {
		return host, nil
	}
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

package kopf

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// defaultServicePort is the port of a Service without an explicit port, as in webhook configurations.
const defaultServicePort = 443

// AdmissionSettings configure the webhook server and the webhook configurations, see docs/admission.md. Kopf:
// settings.admission.
//
// The API server needs one of Service, URL, DetectCluster and Tunnel. The webhook server needs CertificateDir, Secret,
// SelfSigned or Insecure, unless it is a Server or a manager's. Not in a manager: DetectCluster, Tunnel, Port, Address,
// SelfSigned, Insecure, Server, ClientCA, TLSOpts.
type AdmissionSettings struct {
	// Managed names the two webhook configurations that the operator maintains. Default: it writes none. Kopf: managed.
	Managed string
	// FinalizerOnCreate adds the operator's finalizer by a webhook to new objects, which saves a write each. The
	// operator must handle these objects. Not with [AsKopf].
	FinalizerOnCreate bool
	// WithoutMatchConditions omits matchConditions, by which the API server evaluates filters.
	WithoutMatchConditions bool
	// ExcludedNamespaces are names and patterns of namespaces without reviews. Default, for nil: the operator's own
	// namespace, unless Namespaces name it; none with [AsKopf].
	ExcludedNamespaces []string
	// URL is the address of the webhook server, such as "https://192.168.1.5:9443". Kopf: host, port, path.
	URL string
	// Service leads to the webhook server, such as "databases-system/webhook:8443". Default port: 443.
	Service string
	// DetectCluster finds this machine's address for k3d, minikube or Docker Desktop. Other clusters need a URL or
	// Tunnel. Kopf: WebhookAutoServer, WebhookAutoTunnel.
	DetectCluster bool
	// Tunnel connects the cluster to the webhook server, such as webhooks/tunnels/ngrok or a [tunnels.Func]. Kopf: a
	// server that is an asynchronous generator.
	Tunnel tunnels.Tunnel
	// Port is the port of the webhook server. Default: 9443. Kopf: port.
	Port int
	// Address is the local address of the webhook server. Default: all, or "127.0.0.1" with Insecure or Tunnel alone.
	// Kopf: addr.
	Address string
	// CertificateDir is a directory with tls.crt, tls.key and optionally ca.crt, which are reloaded. Kopf: certfile,
	// pkeyfile, cafile.
	CertificateDir string
	// Secret is where the operator keeps and renews its certificate, such as "databases-system/webhook-certificate",
	// which is the default for the Service "databases-system/webhook", but not in a manager.
	Secret string
	// ExtraHosts are further hosts in certificates of the operator, such as a proxy. Kopf: extra_sans.
	ExtraHosts []string
	// SelfSigned creates a certificate in memory, for development. Not with Service. Kopf: servers without certfile.
	SelfSigned bool
	// Insecure serves plain HTTP, for a proxy that terminates TLS. Kopf: insecure.
	Insecure bool
	// Server replaces the webhook server, and must serve its WebhookMux. Kopf: server.
	Server webhook.Server
	// ClientCA is a PEM file of CAs; client certificates of others are rejected. Kopf: verify_cafile.
	ClientCA string
	// RequireClientCertificate rejects clients without a certificate. Kopf: verify_mode=ssl.CERT_REQUIRED.
	RequireClientCertificate bool
	// TLSOpts change the tls.Config of the webhook server. Kopf: context.
	TLSOpts []func(*tls.Config)
	// CAFile is a PEM file with the CA of a certificate that is not from these settings. Kopf: cafile.
	CAFile string
	// CABundle is the content of such a file. Kopf: cadata.
	CABundle []byte
	// DumpCA is a file that receives the CA. Kopf: cadump.
	DumpCA string
}

// host returns the host of the URL, or "" without a URL.
func (a *AdmissionSettings) host() (string, error) {
	if a.URL == "" {
		return "", nil
	}
	parsed, err := url.Parse(a.URL)
	switch {
	case err != nil || parsed.Scheme != "https" || parsed.Hostname() == "":
		return "", fmt.Errorf("%q cannot be called by the API server: write one such as \"https://host:9443\"", a.URL)
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return "", fmt.Errorf("%q has more than a host, a port and a path, which the API server refuses", a.URL)
	}
	return parsed.Hostname(), nil
}

// service returns the Service and its port, or an empty name without a Service.
func (a *AdmissionSettings) service() (name types.NamespacedName, port int32, err error) {
	before, after, given := strings.Cut(a.Service, ":")
	name, err = object(before)
	if err != nil || !given {
		return name, defaultServicePort, err
	}
	number, err := strconv.ParseUint(after, 10, 16)
	if err != nil || number == 0 {
		return name, 0, fmt.Errorf("%q is no port: write the Service such as \"namespace/name:443\"", after)
	}
	return name, int32(number), nil
}

// object parses "namespace/name". An empty text gives an empty name.
func object(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	bad := len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0
	if text != "" && bad {
		return types.NamespacedName{}, fmt.Errorf("%q is not understood: write \"namespace/name\"", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// hosts returns the hosts of the certificate: those that the API server calls, and ExtraHosts.
func (a *AdmissionSettings) hosts() (hosts []string) {
	if service, _, _ := a.service(); service.Name != "" { // it has been checked
		return slices.Concat(tunnels.ServiceHosts(service.Namespace, service.Name), a.ExtraHosts)
	}
	if host, _ := a.host(); host != "" {
		hosts = append(hosts, host)
	}
	if a.DetectCluster {
		hosts = append(hosts, tunnels.DetectableHosts()...)
	}
	return append(hosts, a.ExtraHosts...)
}

package kopf

import (
	"crypto/tls"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

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

// rules returns the settings with their checks.
func (a *AdmissionSettings) rules() *reviews.ReviewSettings { return (*reviews.ReviewSettings)(a) }

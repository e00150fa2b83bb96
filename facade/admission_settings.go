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

// defaultServicePort is the port of a Service that is given without one, as in webhook configurations.
const defaultServicePort = 443

// AdmissionSettings say how handlers of admission are reached: see [Selection.Validate]. They are served by the webhook
// server of the manager. Under [Main], that needs a certificate: of CertificateDir, Secret or SelfSigned; or Insecure,
// or a Server that has one. In a manager that the project makes, the server has one already, unless CertificateDir or
// Secret is set.
//
// Where the API server finds it is said by one of Service, URL, DetectCluster and Tunnel. Kopf: settings.admission.
type AdmissionSettings struct {
	// Managed is the name of the two webhook configurations, a validating and a mutating one, that the operator keeps
	// in line with its handlers and with the kinds in the cluster. Other entries in them are left alone. When the
	// operator exits, only those of handlers with [Persistent] stay. An operator that has no handlers of admission any
	// more takes away what a former version of it has left there. Default: none, so the configurations are somebody
	// else's matter. Kopf: managed.
	Managed string
	// FinalizerOnCreate has objects stored with the finalizer at once, where handlers need it, such as those of
	// deletions, daemons and timers: that spares a write for each object that is created. For each kind with such
	// handlers, the operator serves a mutating endpoint of its own, "finalizer", and has an entry for it in the managed
	// configurations, by which creations go on without it where it does not answer. Objects have to be watched and
	// handled by this operator, be it in another process, or the finalizer stays for ever. It does not go together with
	// [AsKopf]. Default: false, so objects get the finalizer when the operator has seen them.
	FinalizerOnCreate bool
	// WithoutMatchConditions leaves the matchConditions out of the configurations: expressions by which the API server
	// itself checks annotations, comparisons of labels, and the fields of [InField] and [Value], so that requests for
	// other objects do not even come. Default: false; with [AsKopf], there are none in any case.
	WithoutMatchConditions bool
	// ExcludedNamespaces are namespaces whose objects no handler of admission is asked about, by names or by patterns,
	// as [Settings].Namespaces has them, such as "kube-*". Without matchConditions, only names keep the requests from
	// being sent. Default, for nil: the operator's own namespace, which is that of the Service or of its pod, unless
	// Namespaces name it; with [AsKopf], none. An empty list is none.
	ExcludedNamespaces []string
	// URL is where the API server finds the webhook server if that is not in the cluster, such as
	// "https://192.168.1.5:9443". With DetectCluster, it is for all other clusters. Kopf: server, with its arguments
	// host, port and path.
	URL string
	// Service is the one in the cluster that leads to the webhook server, such as "databases-system/webhook", or
	// "databases-system/webhook:8443" if its port is not 443.
	Service string
	// DetectCluster is for operators on a developer's machine, and for clusters there: k3d, minikube or Docker Desktop.
	// The API server is asked which of them it is, and told to call this machine by the name that it has there. Any
	// other cluster needs a URL or a Tunnel, or ends the operator. It needs Managed. Under [Main] only. Kopf:
	// WebhookAutoServer; with a Tunnel, WebhookAutoTunnel.
	DetectCluster bool
	// Tunnel leads from the cluster to the webhook server where nothing else does, such as that of package
	// webhooks/tunnels/ngrok, or one of your own: see [tunnels.Func]. What is served has a random part in its path,
	// which is another one in each process. With DetectCluster, the tunnel is for all other clusters. It needs Managed.
	// Under [Main] only. Default: none. Kopf: a server that is an asynchronous generator.
	Tunnel tunnels.Tunnel
	// Port is that of the webhook server. Under [Main] only. Default: 9443. Kopf: the argument port of servers, by
	// default a free one.
	Port int
	// Address is the one of this machine that the webhook server listens on, such as "127.0.0.1". Under [Main] only.
	// Default: all of them; "127.0.0.1" with Insecure, and with a Tunnel but no DetectCluster. Kopf: the argument addr.
	Address string
	// CertificateDir is a directory with the certificate, as a Secret has it when it is mounted: tls.crt, tls.key, and
	// ca.crt, without which the certificate is its own CA. New files are taken as soon as they come. Kopf: certfile,
	// pkeyfile, cafile.
	CertificateDir string
	// Secret is one in the cluster, such as "databases-system/webhook-certificate", in which the operator keeps a
	// certificate for the hosts of Service and URL: it makes it, and renews it in time, together with its replicas.
	// Default, under [Main] with a Service: that of the Service, with "-certificate" behind its name, unless there is
	// CertificateDir, Insecure or Server.
	Secret string
	// ExtraHosts are more names and addresses for the certificate that the operator makes, by Secret or SelfSigned,
	// beside those of Service, URL and DetectCluster: for a proxy before the webhook server that passes TLS on.
	// Default: none. Kopf: extra_sans.
	ExtraHosts []string
	// SelfSigned makes a certificate in memory, for development: it ends with the process, and another process has
	// another one. So it is refused with a Service. Under [Main] only. Default: false; true for DetectCluster and
	// Tunnel, unless there is CertificateDir, Secret, Insecure or Server. Kopf: a server without certfile.
	SelfSigned bool
	// Insecure serves plain HTTP, which the API server never calls: for a proxy before the webhook server that ends
	// TLS, such as one in the same pod, or at the other end of a Tunnel. With a Server, it only says that this one does
	// so. Under [Main] only. Kopf: insecure.
	Insecure bool
	// Server is a webhook server of your own in the place of the default one, as managers take it. Its methods say
	// where it listens; it serves what is registered in its WebhookMux. If its StartedChecker fails, nothing is told to
	// the API server. Where it has a method SetGetCertificate, and where it is one of webhook.NewServer, it can use
	// CertificateDir, Secret or SelfSigned. Under [Main] only. Kopf: server, a function of your own.
	Server webhook.Server
	// ClientCA is a file with CAs, in PEM: certificates of clients that none of them has signed are refused. The API
	// server shows one if its admission configuration says so; clients without any are served. The file is read
	// for each connection. Under [Main] only. Default: certificates of clients are not asked for. Kopf: verify_cafile.
	ClientCA string
	// RequireClientCertificate refuses clients without a certificate, too. Kopf: verify_mode=ssl.CERT_REQUIRED.
	RequireClientCertificate bool
	// TLSOpts change the tls.Config of the webhook server, such as its versions, ciphers and protocols. The certificate
	// and the CAs of clients are those of the other settings. Under [Main] only. Kopf: context.
	TLSOpts []func(*tls.Config)
	// CAFile is a file with the CA, in PEM, by which the API server verifies the webhook server, for managed
	// configurations: where the certificate is not of these settings but of a proxy, of a Server or of the project's
	// manager. Only its certificates are published. It is read again every minute. Default: what others have put into
	// the configurations is kept. Kopf: cafile.
	CAFile string
	// CABundle is the content of such a file, in the place of CAFile, as webhook configurations and the
	// LocalServingCAData of envtest have it. Kopf: cadata.
	CABundle []byte
	// DumpCA is a file that gets the CA of the certificate, for clients such as curl --cacert. Kopf: cadump.
	DumpCA string
}

// host is that of the URL; empty if there is none.
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

// service is the Service, with its port; empty if there is none.
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

// object is what "namespace/name" stands for; nothing stands for none.
func object(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	bad := len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0
	if text != "" && bad {
		return types.NamespacedName{}, fmt.Errorf("%q is not understood: write \"namespace/name\"", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// hosts are those that the API server calls, and more.
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

package reviews

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// defaultServicePort is the default port of a Service, as in webhook configurations.
const defaultServicePort = 443

// ReviewSettings are the settings of admission. Package facade documents them, and converts its own type to this one,
// so both must have the same fields in the same order.
type ReviewSettings struct {
	Managed                                   string
	FinalizerOnCreate, WithoutMatchConditions bool
	ExcludedNamespaces                        []string
	URL, Service                              string
	DetectCluster                             bool
	Tunnel                                    tunnels.Tunnel
	Port                                      int
	Address, CertificateDir, Secret           string
	ExtraHosts                                []string
	SelfSigned, Insecure                      bool
	Server                                    webhook.Server
	ClientCA                                  string
	RequireClientCertificate                  bool
	TLSOpts                                   []func(*tls.Config)
	CAFile                                    string
	CABundle                                  []byte
	DumpCA                                    string
}

// hostOfURL returns the host of the URL, or "" without a URL. The API server only accepts https URLs without user,
// query and fragment.
func (a *ReviewSettings) hostOfURL() (string, error) {
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

// parseService returns the Service and its port, or an empty name without a Service.
func (a *ReviewSettings) parseService() (name types.NamespacedName, port int32, err error) {
	before, after, given := strings.Cut(a.Service, ":")
	name, err = parseNamespacedName(before)
	if err != nil || !given {
		return name, defaultServicePort, err
	}
	// Port 0 is valid for listeners, but not for a Service.
	number, err := strconv.ParseUint(after, 10, 16)
	if err != nil || number == 0 {
		return name, 0, fmt.Errorf("%q is not a port: write the Service such as \"namespace/name:443\"", after)
	}
	return name, int32(number), nil
}

// parseNamespacedName parses "namespace/name". An empty text gives an empty name.
func parseNamespacedName(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	// A namespace is a label of DNS, but a name can contain dots.
	bad := len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0
	if text != "" && bad {
		return types.NamespacedName{}, fmt.Errorf("%q is not understood: write \"namespace/name\"", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// certificateHosts returns the hosts of the certificate: those that the API server calls, and ExtraHosts. The first one
// becomes the common name.
func (a *ReviewSettings) certificateHosts() (hosts []string) {
	if service, _, _ := a.parseService(); service.Name != "" { // [ReviewSettings.CheckFields] reports the error
		return slices.Concat(tunnels.ServiceHosts(service.Namespace, service.Name), a.ExtraHosts)
	}
	if host, _ := a.hostOfURL(); host != "" {
		hosts = append(hosts, host)
	}
	// The cluster is not detected yet when the certificate is created, so it contains the names of all of them.
	if a.DetectCluster {
		hosts = append(hosts, tunnels.DetectableHosts()...)
	}
	return append(hosts, a.ExtraHosts...)
}

// loopback is the address of a server that only this machine can reach.
const loopback = "127.0.0.1"

// CheckProgramOnly returns an error for each setting of the webhook server. In a manager of the project, the project
// has already configured this server.
func (a *ReviewSettings) CheckProgramOnly() []error {
	const server = "give webhook.NewServer to the manager as its WebhookServer"
	const way = "the server is the manager's: set Admission.URL or Admission.Service"
	only := defaults.CheckProgramOnly
	return defaults.NonNilErrors(
		only("Admission.Port", a.Port != 0, server),
		only("Admission.Address", a.Address != "", server),
		only("Admission.SelfSigned", a.SelfSigned,
			"other replicas would have another certificate: set Admission.Secret"),
		// Without TLS, the project uses a webhook.Server of its own.
		only("Admission.Insecure", a.Insecure, "give a webhook.Server without TLS to the manager as its WebhookServer"),
		only("Admission.Server", a.Server != nil, "give it to the manager as its WebhookServer"),
		only("Admission.ClientCA", a.ClientCA != "", server+", with ClientCAs in its TLSOpts"),
		only("Admission.TLSOpts", len(a.TLSOpts) > 0, server+", with these TLSOpts"),
		only("Admission.DetectCluster", a.DetectCluster, way),
		only("Admission.Tunnel", a.Tunnel != nil, way),
	)
}

// WebhookServer returns the webhook server of a program.
func (a *ReviewSettings) WebhookServer() webhook.Server {
	host, port := a.listenAddress()
	switch {
	case a.Server != nil:
		return a.Server
	case a.Insecure:
		// The server of controller-runtime cannot serve without TLS.
		return serving.NewPlainServer(net.JoinHostPort(host, strconv.Itoa(port)))
	}
	options := webhook.Options{Host: host, Port: port, TLSOpts: slices.Clone(a.TLSOpts)}
	// Last, because this sets GetConfigForClient, which one of the TLSOpts may have set, too.
	if a.ClientCA != "" {
		options.TLSOpts = append(options.TLSOpts, a.clientVerification().ConfigureTLS)
	}
	return webhook.NewServer(options)
}

// clientVerification returns the check of client certificates.
func (a *ReviewSettings) clientVerification() certificates.ClientVerification {
	return certificates.ClientVerification{File: a.ClientCA, Required: a.RequireClientCertificate}
}

// listenAddress returns where the server of a program listens. An empty host means all addresses.
func (a *ReviewSettings) listenAddress() (host string, port int) {
	host, port = a.Address, cmp.Or(a.Port, webhook.DefaultPort)
	// A DefaultServer of the user decides by itself.
	if own, is := a.Server.(*webhook.DefaultServer); is {
		return own.Options.Host, cmp.Or(own.Options.Port, port)
	}
	// A proxy or a tunnel is on the same machine. A detected cluster is not, although it may run on it.
	if host == "" && (a.Insecure || a.Tunnel != nil && !a.DetectCluster) {
		host = loopback
	}
	return host, port
}

// localServer returns the server that a tunnel leads to.
func (a *ReviewSettings) localServer() tunnels.Local {
	host, port := a.listenAddress()
	local := tunnels.Local{Scheme: "https", Address: net.JoinHostPort(tunnels.Routable(host), strconv.Itoa(port))}
	if a.Insecure {
		local.Scheme = "http"
	}
	return local
}

// certificateSetter is a webhook server of the project that accepts a certificate.
type certificateSetter interface {
	SetGetCertificate(get func(*tls.ClientHelloInfo) (*tls.Certificate, error))
}

// setServerCertificate makes the webhook server use the certificate of these settings.
func setServerCertificate(on webhook.Server, get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	switch on := on.(type) {
	case *webhook.DefaultServer:
		// The options are functions, so the only way to detect a certificate is to apply them to an empty
		// configuration.
		given := &tls.Config{MinVersion: tls.VersionTLS12}
		for _, change := range on.Options.TLSOpts {
			change(given)
		}
		// Two operators in one manager would replace each other's certificate.
		if given.GetCertificate != nil {
			//nolint:staticcheck // the text begins with the name of a field
			return errors.New("Admission: the webhook server of the manager has a certificate already, by its " +
				"TLSOpts or by another operator: leave out CertificateDir and Secret")
		}
		// Options are read when the server starts, so adding one here still has an effect.
		on.Options.TLSOpts = append(slices.Clone(on.Options.TLSOpts), func(c *tls.Config) { c.GetCertificate = get })
	case certificateSetter:
		on.SetGetCertificate(get)
	default:
		//nolint:staticcheck // the text begins with the name of a field
		return fmt.Errorf("Admission: the webhook server of the manager, a %T, cannot be given a certificate: leave "+
			"out CertificateDir and Secret, or give it the method SetGetCertificate", on)
	}
	return nil
}

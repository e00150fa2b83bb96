package reviews

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

// ReviewSettings are the settings of admission, as package facade documents them.
type ReviewSettings struct {
	Managed                  string
	FinalizerOnCreate        bool
	WithoutMatchConditions   bool
	ExcludedNamespaces       []string
	URL                      string
	Service                  string
	DetectCluster            bool
	Tunnel                   tunnels.Tunnel
	Port                     int
	Address                  string
	CertificateDir           string
	Secret                   string
	ExtraHosts               []string
	SelfSigned               bool
	Insecure                 bool
	Server                   webhook.Server
	ClientCA                 string
	RequireClientCertificate bool
	TLSOpts                  []func(*tls.Config)
	CAFile                   string
	CABundle                 []byte
	DumpCA                   string
}

// host returns the host of the URL, or "" without a URL.
func (a *ReviewSettings) host() (string, error) {
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
func (a *ReviewSettings) service() (name types.NamespacedName, port int32, err error) {
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
func (a *ReviewSettings) hosts() (hosts []string) {
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

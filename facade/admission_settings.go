package facade

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// defaultServicePort is the port of a Service that is given without one, as in webhook configurations.
const defaultServicePort = 443

// AdmissionSettings say how handlers of admission are reached: see [Selection.Validate]. They are served by the webhook
// server of the manager. Under [Main], that needs a certificate: of CertificateDir, Secret or SelfSigned. In a manager
// that the project makes, the server has one already, unless one of these is set. Kopf: settings.admission.
type AdmissionSettings struct {
	// Managed is the name of the two webhook configurations, a validating and a mutating one, that the operator keeps
	// in line with its handlers and with the kinds in the cluster. Other entries in them are left alone. When the
	// operator exits, only those of handlers with [Persistent] stay. It needs URL or Service. Default: none, so the
	// configurations are somebody else's matter. Kopf: managed.
	Managed string
	// URL is where the API server finds the webhook server if that is not in the cluster, such as
	// "https://192.168.1.5:9443". Kopf: server, with its arguments host and port.
	URL string
	// Service is the one in the cluster that leads to the webhook server, such as "databases-system/webhook", or
	// "databases-system/webhook:8443" if its port is not 443.
	Service string
	// Port is that of the webhook server, on all addresses of the machine. Under [Main] only. Default: 9443. Kopf: the
	// argument port of servers, by default a free one.
	Port int
	// CertificateDir is a directory with the certificate, as a Secret has it when it is mounted: tls.crt, tls.key, and
	// ca.crt, without which the certificate is its own CA. New files are taken as soon as they come. Kopf: certfile,
	// pkeyfile, cafile.
	CertificateDir string
	// Secret is one in the cluster, such as "databases-system/webhook-certificate", in which the operator keeps a
	// certificate for the hosts of Service and URL: it makes it, and renews it in time, together with its replicas.
	// Default, under [Main] with a Service: that of the Service, with "-certificate" behind its name, unless there is
	// CertificateDir.
	Secret string
	// SelfSigned makes a certificate in memory, for development: it ends with the process, and another process has
	// another one. So it is refused with a Service. Under [Main] only. Kopf: a server without certfile.
	SelfSigned bool
	// DumpCA is a file that gets the CA of the certificate, for clients such as curl --cacert. Kopf: cadump.
	DumpCA string
}

// check tells what is wrong, wherever the operator runs.
func (a *AdmissionSettings) check() (problems []error) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("Admission."+format, args...))
	}
	if texts := validation.IsDNS1123Subdomain(a.Managed); a.Managed != "" && len(texts) > 0 {
		wrong("Managed: %q cannot be the name of webhook configurations: %s", a.Managed, texts[0])
	}
	if _, err := a.host(); err != nil {
		wrong("URL: %w", err)
	}
	if _, _, err := a.service(); err != nil {
		wrong("Service: %w", err)
	}
	if _, err := object(a.Secret); err != nil {
		wrong("Secret: %w", err)
	}
	if a.Port < 0 || a.Port > 65535 {
		wrong("Port: %d: it must be a port, up to 65535, or zero for the default of 9443", a.Port)
	}
	switch {
	case a.URL != "" && a.Service != "":
		wrong("URL: there is a Service, too, and the API server takes one of them: leave the other one out")
	case a.Managed != "" && a.URL == "" && a.Service == "":
		wrong("Managed: it is not known where the API server finds the operator: set Admission.Service in a cluster, " +
			"Admission.URL outside of it")
	}
	return append(problems, a.checkCertificates()...)
}

// checkCertificates tells whether there is one certificate at most, and whether it can be.
func (a *AdmissionSettings) checkCertificates() (problems []error) {
	var sources []string
	for _, source := range []struct {
		name string
		set  bool
	}{{"CertificateDir", a.CertificateDir != ""}, {"Secret", a.Secret != ""}, {"SelfSigned", a.SelfSigned}} {
		if source.set {
			sources = append(sources, "Admission."+source.name)
		}
	}
	if len(sources) > 1 {
		problems = append(problems, fmt.Errorf("%s: each of them is a certificate, and there can be one: leave the "+
			"others out", strings.Join(sources, ", ")))
	}
	if a.SelfSigned && a.Service != "" {
		problems = append(problems, errors.New("Admission.SelfSigned: behind a Service, there may be several "+
			"processes, each with a certificate of its own: leave it out, and the operator keeps one in a Secret"))
	}
	if a.Secret != "" && a.Service == "" && a.URL == "" {
		problems = append(problems, errors.New("Admission.Secret: it is not known which hosts the certificate is for: "+
			"set Admission.Service or Admission.URL"))
	}
	return problems
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

// hosts are those that the API server calls.
func (a *AdmissionSettings) hosts() []string {
	if service, _, _ := a.service(); service.Name != "" { // it has been checked
		return tunnels.ServiceHosts(service.Namespace, service.Name)
	}
	if host, _ := a.host(); host != "" {
		return []string{host}
	}
	return nil
}

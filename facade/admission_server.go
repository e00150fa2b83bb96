package kopf

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// loopback is where a server listens that only this machine shall reach.
const loopback = "127.0.0.1"

// programOnly are the settings of a server that a given manager has already.
func (a *AdmissionSettings) programOnly() []programSetting {
	const server = "give webhook.NewServer to the manager as its WebhookServer"
	const way = "the server is the manager's: set Admission.URL or Admission.Service"
	return []programSetting{
		{"Admission.Port", a.Port != 0, server},
		{"Admission.Address", a.Address != "", server},
		{"Admission.SelfSigned", a.SelfSigned, "other replicas would have another certificate: set Admission.Secret"},
		{"Admission.Insecure", a.Insecure, "give a webhook.Server without TLS to the manager as its WebhookServer"},
		{"Admission.Server", a.Server != nil, "give it to the manager as its WebhookServer"},
		{"Admission.ClientCA", a.ClientCA != "", server + ", with ClientCAs in its TLSOpts"},
		{"Admission.TLSOpts", len(a.TLSOpts) > 0, server + ", with these TLSOpts"},
		{"Admission.DetectCluster", a.DetectCluster, way},
		{"Admission.Tunnel", a.Tunnel != nil, way},
	}
}

// webhookServer is that of a program.
func (a *AdmissionSettings) webhookServer() webhook.Server {
	host, port := a.listens()
	switch {
	case a.Server != nil:
		return a.Server
	case a.Insecure:
		return serving.NewPlainServer(net.JoinHostPort(host, strconv.Itoa(port)))
	}
	options := webhook.Options{Host: host, Port: port, TLSOpts: slices.Clone(a.TLSOpts)}
	if a.ClientCA != "" {
		options.TLSOpts = append(options.TLSOpts, a.clients().Apply)
	}
	return webhook.NewServer(options)
}

func (a *AdmissionSettings) clients() certificates.Clients {
	return certificates.Clients{File: a.ClientCA, Required: a.RequireClientCertificate}
}

// listens is where the server of a program listens; no host is all of them.
func (a *AdmissionSettings) listens() (host string, port int) {
	host, port = a.Address, cmp.Or(a.Port, webhook.DefaultPort)
	if own, is := a.Server.(*webhook.DefaultServer); is {
		return own.Options.Host, cmp.Or(own.Options.Port, port)
	}
	if host == "" && (a.Insecure || a.Tunnel != nil && !a.DetectCluster) {
		host = loopback
	}
	return host, port
}

// local is where a tunnel leads to.
func (a *AdmissionSettings) local() tunnels.Local {
	host, port := a.listens()
	local := tunnels.Local{Scheme: "https", Address: net.JoinHostPort(tunnels.Routable(host), strconv.Itoa(port))}
	if a.Insecure {
		local.Scheme = "http"
	}
	return local
}

// certifiable is a webhook server of the project's own that can be given a certificate.
type certifiable interface {
	SetGetCertificate(get func(*tls.ClientHelloInfo) (*tls.Certificate, error))
}

// certify has the webhook server use the certificate of these settings.
func certify(on webhook.Server, get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	switch on := on.(type) {
	case *webhook.DefaultServer:
		given := &tls.Config{MinVersion: tls.VersionTLS12}
		for _, change := range on.Options.TLSOpts {
			change(given)
		}
		if given.GetCertificate != nil {
			return errors.New("Admission: the webhook server of the manager has a certificate already, by its " +
				"TLSOpts or by another operator: leave out CertificateDir and Secret")
		}
		on.Options.TLSOpts = append(slices.Clone(on.Options.TLSOpts), func(c *tls.Config) { c.GetCertificate = get })
	case certifiable:
		on.SetGetCertificate(get)
	default:
		return fmt.Errorf("Admission: the webhook server of the manager, a %T, cannot be given a certificate: leave "+
			"out CertificateDir and Secret, or give it the method SetGetCertificate", on)
	}
	return nil
}

// checkServer tells whether there is a server for the handlers of admission, and all that the settings need of it.
func (a *AdmissionSettings) checkServer(program bool) error {
	certified := len(a.certificates()) > 0 || program && (a.Service != "" || a.isSelfSigned()) && !a.isForeign()
	switch {
	case program && a.ClientCA != "" && a.clients().Check() != nil:
		return fmt.Errorf("Admission.ClientCA: %w", a.clients().Check())
	case program && len(a.foreignCA()) > 0 && !a.isForeign():
		return fmt.Errorf("%s: the CA is that of the operator's own certificate: leave it out, or set "+
			"Admission.Insecure or Admission.Server, which leave TLS to others", a.foreignCA()[0])
	case certified:
		return nil
	case a.DumpCA != "" && len(a.foreignCA()) == 0 && (!program || a.isForeign()):
		return errors.New("Admission.DumpCA: only the webhook server knows its certificate: set " +
			"Admission.CertificateDir or Admission.Secret, or leave it out")
	case program && !a.isForeign():
		who := "there are handlers of admission"
		if a.FinalizerOnCreate {
			who += ", that of FinalizerOnCreate among them"
		}
		return fmt.Errorf("Admission: %s, and no certificate to serve them with: set Admission.Service or "+
			"Admission.CertificateDir in a cluster, Admission.SelfSigned for development", who)
	default:
		return nil
	}
}

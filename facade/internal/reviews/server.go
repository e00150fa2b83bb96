package reviews

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// loopback is where a server listens that only this machine shall reach.
const loopback = "127.0.0.1"

// CheckProgramOnly returns an error for each setting of a server that a given manager has already.
func (a *ReviewSettings) CheckProgramOnly() []error {
	const server = "give webhook.NewServer to the manager as its WebhookServer"
	const way = "the server is the manager's: set Admission.URL or Admission.Service"
	return defaults.Problems(
		defaults.ProgramOnly("Admission.Port", a.Port != 0, server),
		defaults.ProgramOnly("Admission.Address", a.Address != "", server),
		defaults.ProgramOnly("Admission.SelfSigned", a.SelfSigned,
			"other replicas would have another certificate: set Admission.Secret"),
		defaults.ProgramOnly("Admission.Insecure", a.Insecure,
			"give a webhook.Server without TLS to the manager as its WebhookServer"),
		defaults.ProgramOnly("Admission.Server", a.Server != nil, "give it to the manager as its WebhookServer"),
		defaults.ProgramOnly("Admission.ClientCA", a.ClientCA != "", server+", with ClientCAs in its TLSOpts"),
		defaults.ProgramOnly("Admission.TLSOpts", len(a.TLSOpts) > 0, server+", with these TLSOpts"),
		defaults.ProgramOnly("Admission.DetectCluster", a.DetectCluster, way),
		defaults.ProgramOnly("Admission.Tunnel", a.Tunnel != nil, way),
	)
}

// WebhookServer is that of a program.
func (a *ReviewSettings) WebhookServer() webhook.Server {
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

func (a *ReviewSettings) clients() certificates.Clients {
	return certificates.Clients{File: a.ClientCA, Required: a.RequireClientCertificate}
}

// listens is where the server of a program listens; no host is all of them.
func (a *ReviewSettings) listens() (host string, port int) {
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
func (a *ReviewSettings) local() tunnels.Local {
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

package reviews

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// handOver is how long a process behind a Service that exits waits for another one to take its place.
const handOver = time.Second

// reach fills in the certificate, and how the API server finds the handlers. It reports whether the webhook server is
// to use the certificate.
func (r *ReviewServer) reach(m ctrl.Manager, o *admission.Options, program bool) (certified bool, err error) {
	own := r.settings
	source, foreign, err := own.source(m, o, program)
	if err != nil {
		return false, err
	}
	o.Certificates, o.Dump, o.Managed = source, own.DumpCA, own.Managed
	o.Started = m.GetWebhookServer().StartedChecker()
	o.Identity = processIdentity()
	own.lead(m, o)
	return source != nil && !foreign, nil
}

// reach is the way from the API server, if it is known beforehand; nil otherwise.
func (a *ReviewSettings) reach(path string) func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
	service, port, _ := a.service() // it has been checked
	switch {
	case a.Service != "":
		return func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByService(service.Namespace, service.Name, port, path, bundle)
		}
	case a.URL != "":
		return func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByURL(strings.TrimRight(a.URL, "/")+path, bundle)
		}
	}
	return nil
}

// lead fills in the way from the API server.
func (a *ReviewSettings) lead(m ctrl.Manager, o *admission.Options) {
	o.Reach = a.reach(o.Path)
	switch {
	case a.Service != "":
		o.HandOver = handOver
	case a.Tunnel != nil:
		o.Tunnel, o.Local, o.Path = a.Tunnel, a.local(), "/"+tunnels.Secret()+o.Path
	case a.URL != "" && a.DetectCluster:
		o.Tunnel = tunnels.Fixed(a.URL)
	}
	if a.DetectCluster {
		o.Local = a.local()
		o.Tunnel = tunnels.Detecting{Config: m.GetConfig(), HTTPClient: m.GetHTTPClient(), Otherwise: o.Tunnel}
	}
}

// processIdentity is that of no other process: pods have names of their own, but not their containers.
func processIdentity() string {
	host, _ := os.Hostname() // the rest is enough
	return host + "_" + string(uuid.NewUUID())
}

// isForeign tells whether TLS is somebody else's matter, in a program.
func (a *ReviewSettings) isForeign() bool { return a.Insecure || a.Server != nil }

// isSelfSigned tells whether a program makes a certificate in memory.
func (a *ReviewSettings) isSelfSigned() bool {
	development := a.DetectCluster || a.Tunnel != nil
	return a.SelfSigned || development && len(a.certificates()) == 0 && !a.isForeign()
}

// secret is where a certificate is kept in the cluster; none, if it is not.
func (a *ReviewSettings) secret(program bool) (types.NamespacedName, error) {
	secret, err := object(a.Secret)
	if err != nil {
		return secret, err
	}
	if service, _, _ := a.service(); program && service.Name != "" && a.Secret == "" && !a.isForeign() {
		secret = service
		secret.Name += "-certificate"
	}
	return secret, nil
}

// source is where the certificate comes from; nil if the webhook server has one. If it is foreign, only the bundle is
// known.
func (a *ReviewSettings) source(
	m ctrl.Manager, o *admission.Options, program bool,
) (source certificates.Source, foreign bool, err error) {
	secret, err := a.secret(program)
	switch {
	case err != nil:
		return nil, false, err
	case len(a.foreignCA()) > 0:
		if source, err = certificates.Foreign(a.CAFile, a.CABundle); err != nil {
			return nil, true, fmt.Errorf("%s: %w", a.foreignCA()[0], err)
		}
		return source, true, nil
	case a.CertificateDir != "":
		source, err = a.files()
	case a.isSelfSigned():
		source, err = certificates.SelfSigned(a.ownHosts()...)
	case secret.Name != "":
		source, err = a.rotation(m, o, secret)
	}
	return source, false, err
}

// foreignCA are the fields that give the CA of a certificate that is not of these settings.
func (a *ReviewSettings) foreignCA() []string {
	return fieldsGiven("CABundle", len(a.CABundle) > 0, "CAFile", a.CAFile != "")
}

// ownHosts are those for a certificate in memory.
func (a *ReviewSettings) ownHosts() []string {
	all := slices.Concat(a.hosts(), []string{"localhost", loopback, "::1"})
	if a.Address != "" && !slices.Contains(all, tunnels.Routable(a.Address)) {
		all = append(all, a.Address)
	}
	return all
}

// rotation is the certificate in the Secret. Where the operator manages the webhook configurations, they have the
// fingerprints of its certificates.
func (a *ReviewSettings) rotation(
	m ctrl.Manager, o *admission.Options, secret types.NamespacedName,
) (certificates.Source, error) {
	client, err := certificates.NewClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of the Secret %s: %w", secret, err)
	}
	rotation := certificates.Rotation{
		Client: client, Namespace: secret.Namespace, Name: secret.Name, Operator: o.Operator, Hosts: a.hosts(),
	}
	if a.Managed == "" {
		return rotation.Open()
	}
	if rotation.Ledger, err = a.records(m, o); err != nil {
		return nil, err
	}
	return rotation.Open()
}

// records are the fingerprints of certificates in the webhook configurations.
func (a *ReviewSettings) records(m ctrl.Manager, o *admission.Options) (*configurations.Records, error) {
	client, err := configurations.NewClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of webhook configurations: %w", err)
	}
	mutating := !slices.ContainsFunc(o.Registrations, func(r admission.Registration) bool {
		return !r.Handler.Mutating
	})
	return configurations.NewRecords(configurations.Options{
		Client: client, Name: a.Managed, Operator: o.Operator, Form: configurations.Form{AsKopf: o.AsKopf},
	}, mutating), nil
}

// files are those of the directory.
func (a *ReviewSettings) files() (certificates.Source, error) {
	files := certificates.Files{
		Certificate: filepath.Join(a.CertificateDir, "tls.crt"), Key: filepath.Join(a.CertificateDir, "tls.key"),
	}
	if ca := filepath.Join(a.CertificateDir, "ca.crt"); exists(ca) {
		files.CA = ca
	}
	source, err := files.Open()
	if err != nil {
		return nil, fmt.Errorf("Admission.CertificateDir: %w", err)
	}
	return source, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

package facade

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// handOver is how long a process behind a Service that exits waits for another one to take its place.
const handOver = time.Second

// reachAdmission fills in the certificate, and how the API server finds the handlers.
func (op *Operator) reachAdmission(m ctrl.Manager, o *admission.Options) (err error) {
	own := op.settings.values.Admission
	if o.Certificates, err = own.source(op.name, m, op.started); err != nil {
		return err
	}
	o.Dump, o.Managed, o.Started = own.DumpCA, own.Managed, m.GetWebhookServer().StartedChecker()
	o.Identity = processIdentity()
	service, port, err := own.service()
	switch {
	case err != nil:
		return err
	case own.Service != "":
		o.HandOver = handOver
		o.Reach = func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByService(service.Namespace, service.Name, port, o.Path, bundle)
		}
	case own.URL != "":
		o.Reach = func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByURL(strings.TrimRight(own.URL, "/")+o.Path, bundle)
		}
	}
	return nil
}

// processIdentity is that of no other process: pods have names of their own, but not their containers.
func processIdentity() string {
	host, _ := os.Hostname() // the rest is enough
	return host + "_" + string(uuid.NewUUID())
}

// source is where the certificate comes from; nil if the webhook server has one.
func (a *AdmissionSettings) source(operator string, m ctrl.Manager, program bool) (certificates.Source, error) {
	secret, err := object(a.Secret)
	if err != nil {
		return nil, err
	}
	if service, _, _ := a.service(); program && service.Name != "" && a.Secret == "" {
		secret = service
		secret.Name += "-certificate"
	}
	switch {
	case a.CertificateDir != "":
		return a.files()
	case a.SelfSigned:
		return certificates.SelfSigned(slices.Concat(a.hosts(), []string{"localhost", "127.0.0.1", "::1"})...)
	case secret.Name != "":
		client, err := certificates.NewClient(m.GetConfig(), m.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("making the client of the Secret %s: %w", secret, err)
		}
		return certificates.Rotation{
			Client: client, Namespace: secret.Namespace, Name: secret.Name, Operator: operator, Hosts: a.hosts(),
		}.Open()
	default:
		return nil, nil
	}
}

// files are those of the directory.
func (a *AdmissionSettings) files() (certificates.Source, error) {
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

// listen sets the port of the webhook server of a program.
func (a *AdmissionSettings) listen(on webhook.Server) {
	if server, is := on.(*webhook.DefaultServer); is && a.Port != 0 {
		server.Options.Port = a.Port
	}
}

// checkServer tells whether there is a server for the handlers of admission, and all that the settings need of it.
func (a *AdmissionSettings) checkServer(program bool) error {
	has := a.CertificateDir != "" || a.Secret != "" || a.SelfSigned || program && a.Service != ""
	switch {
	case has:
		return nil
	case program:
		return errors.New("Admission: there are handlers of admission, and no certificate to serve them with: set " +
			"Admission.Service or Admission.CertificateDir in a cluster, Admission.SelfSigned for development")
	case a.DumpCA != "":
		return errors.New("Admission.DumpCA: only the webhook server knows its certificate: set " +
			"Admission.CertificateDir or Admission.Secret, or leave it out")
	default:
		return nil
	}
}

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

// handOverTime is how long an exiting process behind a Service waits for another replica to take over its webhook
// entries.
const handOverTime = time.Second

// configureEndpoint sets the certificate, and how the API server finds the handlers. It reports whether the webhook
// server must use this certificate: a foreign one is only known by its CA.
func (r *ReviewServer) configureEndpoint(
	m ctrl.Manager, o *admission.Options, program bool,
) (certified bool, err error) {
	own := r.settings
	source, foreign, err := own.certificateSource(m, o, program)
	if err != nil {
		return false, err
	}
	o.Certificates, o.CADumpFile, o.Managed = source, own.DumpCA, own.Managed
	// Entries in the cluster are only written when the webhook server is listening.
	o.StartedChecker = m.GetWebhookServer().StartedChecker()
	o.Identity = newProcessIdentity()
	own.configureAddress(m, o)
	return source != nil && !foreign, nil
}

// clientConfigBuilder returns a function that adds the CA bundle to the address of the operator. It returns nil if only
// a tunnel or the detection of the cluster can find the address.
func (a *ReviewSettings) clientConfigBuilder(
	path string,
) func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
	service, port, _ := a.parseService() // [ReviewSettings.CheckFields] reports the error
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

// configureAddress sets how the API server finds the operator. A Service or a URL is a fixed address. DetectCluster
// finds this machine by a name that the cluster resolves, and uses the URL or the Tunnel only for other clusters. A
// Tunnel reports its address when it is open.
func (a *ReviewSettings) configureAddress(m ctrl.Manager, o *admission.Options) {
	// A tunnel overrides Reach: see [admission.Options].
	o.ClientConfig = a.clientConfigBuilder(o.Path)
	switch {
	case a.Service != "":
		// Only a Service can lead to another replica.
		o.HandOver = handOverTime
	case a.Tunnel != nil:
		// The other end of a tunnel is public, so the path contains a secret.
		o.Tunnel, o.LocalServer, o.Path = a.Tunnel, a.localServer(), "/"+tunnels.Secret()+o.Path
	case a.URL != "" && a.DetectCluster:
		// The detection comes first. The URL is for other clusters.
		o.Tunnel = tunnels.Fixed(a.URL)
	}
	if a.DetectCluster {
		// Only a tunnel or the detection needs the local port.
		o.LocalServer = a.localServer()
		o.Tunnel = tunnels.Detecting{Config: m.GetConfig(), HTTPClient: m.GetHTTPClient(), Otherwise: o.Tunnel}
	}
}

// newProcessIdentity returns a unique identity of this process. The name of the host alone does not suffice: the
// containers of a pod share it, and so does a restarted container.
func newProcessIdentity() string {
	host, _ := os.Hostname() // the random part is sufficient
	return host + "_" + string(uuid.NewUUID())
}

// hasForeignTLS reports whether something other than the operator is responsible for TLS, in a program.
func (a *ReviewSettings) hasForeignTLS() bool { return a.Insecure || a.Server != nil }

// isSelfSigned reports whether a program creates a certificate in memory. With development settings, that is the
// default.
func (a *ReviewSettings) isSelfSigned() bool {
	development := a.DetectCluster || a.Tunnel != nil
	return a.SelfSigned || development && len(a.certificateFields()) == 0 && !a.hasForeignTLS()
}

// certificateSecret returns the Secret that contains the certificate, or an empty name. In a program, the default
// follows from the name of the Service.
func (a *ReviewSettings) certificateSecret(program bool) (types.NamespacedName, error) {
	secret, err := parseNamespacedName(a.Secret)
	if err != nil {
		return secret, err
	}
	// In a manager, a Service alone does not imply a Secret, because the project may have a certificate already.
	if service, _, _ := a.parseService(); program && service.Name != "" && a.Secret == "" && !a.hasForeignTLS() {
		secret = service
		secret.Name += "-certificate"
	}
	return secret, nil
}

// certificateSource returns the source of the certificate, or nil if the webhook server has its own. If foreign is
// true, only the CA bundle is known. An explicit source has priority over the default Secret. The checks of the
// settings ensure that there is at most one explicit source.
func (a *ReviewSettings) certificateSource(
	m ctrl.Manager, o *admission.Options, program bool,
) (source certificates.Source, foreign bool, err error) {
	secret, err := a.certificateSecret(program)
	switch {
	case err != nil:
		return nil, false, err
	case len(a.foreignBundleFields()) > 0:
		if source, err = certificates.ForeignSource(a.CAFile, a.CABundle); err != nil {
			return nil, true, fmt.Errorf("%s: %w", a.foreignBundleFields()[0], err)
		}
		return source, true, nil
	case a.CertificateDir != "":
		source, err = a.openCertificateFiles()
	case a.isSelfSigned():
		source, err = certificates.SelfSignedSource(a.selfSignedHosts()...)
	case secret.Name != "":
		source, err = a.openSecretRotation(m, o, secret)
	}
	return source, false, err
}

// foreignBundleFields returns the names of the fields with the CA of a certificate that does not come from these
// settings.
func (a *ReviewSettings) foreignBundleFields() []string {
	return fieldsGiven("CABundle", len(a.CABundle) > 0, "CAFile", a.CAFile != "")
}

// selfSignedHosts returns the hosts of a certificate in memory. It includes this machine, so that tunnels and local
// clients can verify the server.
func (a *ReviewSettings) selfSignedHosts() []string {
	all := slices.Concat(a.certificateHosts(), []string{"localhost", loopback, "::1"})
	// An unspecified address, such as 0.0.0.0, is not a host that clients use.
	if a.Address != "" && !slices.Contains(all, tunnels.Routable(a.Address)) {
		all = append(all, a.Address)
	}
	return all
}

// openSecretRotation returns the certificate in the Secret. If the operator manages webhook configurations, these
// contain the fingerprints of its certificates: write access to the Secret alone then does not suffice to publish
// another CA.
func (a *ReviewSettings) openSecretRotation(
	m ctrl.Manager, o *admission.Options, secret types.NamespacedName,
) (certificates.Source, error) {
	client, err := certificates.NewClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of the Secret %s: %w", secret, err)
	}
	rotation := certificates.Rotation{
		Client: client, Namespace: secret.Namespace, Name: secret.Name, Operator: o.Operator,
		Hosts: a.certificateHosts(),
	}
	if a.Managed == "" {
		// Without managed configurations, nothing outside of the Secret can store fingerprints, so the Secret is
		// trusted.
		return rotation.Open()
	}
	if rotation.Ledger, err = a.fingerprintRecords(m, o); err != nil {
		return nil, err
	}
	return rotation.Open()
}

// fingerprintRecords returns the fingerprints of certificates in the webhook configurations.
func (a *ReviewSettings) fingerprintRecords(m ctrl.Manager, o *admission.Options) (*configurations.Records, error) {
	client, err := configurations.NewClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of webhook configurations: %w", err)
	}
	// Without validating handlers, only the mutating configuration is needed, so it gets the fingerprints.
	mutating := !slices.ContainsFunc(o.Registrations, func(r admission.RegisteredHandler) bool {
		return !r.Handler.Mutating
	})
	return configurations.NewRecords(configurations.Options{
		Client: client, Name: a.Managed, Operator: o.Operator, Form: configurations.Form{AsKopf: o.AsKopf},
	}, mutating), nil
}

// openCertificateFiles returns the certificate in the directory, with the file names of Secrets of the type
// kubernetes.io/tls.
func (a *ReviewSettings) openCertificateFiles() (certificates.Source, error) {
	files := certificates.Files{
		Certificate: filepath.Join(a.CertificateDir, "tls.crt"), Key: filepath.Join(a.CertificateDir, "tls.key"),
	}
	// ca.crt is optional: the certificate may be signed by itself.
	if ca := filepath.Join(a.CertificateDir, "ca.crt"); fileExists(ca) {
		files.CA = ca
	}
	// Open reads the files, so a missing file is an error of the set-up.
	source, err := files.Open()
	if err != nil {
		return nil, fmt.Errorf("Admission.CertificateDir: %w", err)
	}
	return source, nil
}

// fileExists reports whether there is a file. A file that cannot be checked counts as missing.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

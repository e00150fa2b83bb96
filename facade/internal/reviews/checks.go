package reviews

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// CheckFields returns all errors that do not depend on where the operator runs. [ReviewSettings.CheckServer] and
// [ReviewSettings.CheckProgramOnly] return the others.
func (a *ReviewSettings) CheckFields() (problems []error) {
	// All errors are collected, so that the user can fix them in one go.
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("Admission."+format, args...))
	}
	// The mutating and the validating webhook configuration both have this name.
	if texts := validation.IsDNS1123Subdomain(a.Managed); a.Managed != "" && len(texts) > 0 {
		wrong("Managed: %q cannot be the name of webhook configurations: %s", a.Managed, texts[0])
	}
	if _, err := a.hostOfURL(); err != nil {
		wrong("URL: %w", err)
	}
	if _, _, err := a.parseService(); err != nil {
		wrong("Service: %w", err)
	}
	if _, err := parseNamespacedName(a.Secret); err != nil {
		wrong("Secret: %w", err)
	}
	if a.Port < 0 || a.Port > 65535 {
		wrong("Port: %d: it must be a port, up to 65535, or zero for the default of 9443", a.Port)
	}
	// The address is given to net.Listen together with the port, so it must be an IP address alone.
	if a.Address != "" && net.ParseIP(a.Address) == nil {
		wrong("Address: %q is not an IP address: write one such as \"127.0.0.1\"; the port is Admission.Port",
			a.Address)
	}
	// Certificates can contain wildcard names, such as *.example.org.
	for _, host := range a.ExtraHosts {
		isName := len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0
		if !isName && net.ParseIP(host) == nil {
			wrong("ExtraHosts: %q is not a host: write a name or an address, without scheme and port", host)
		}
	}
	for _, text := range a.ExcludedNamespaces {
		if err := namespaces.CheckPattern(text); err != nil {
			wrong("ExcludedNamespaces: %w", err)
		}
	}
	// The checks above concern single fields. The remaining ones concern combinations of fields.
	problems = append(problems, a.checkServerAddress()...)
	problems = append(problems, a.checkCertificates()...)
	return append(problems, a.checkServerConflicts()...)
}

// fieldsGiven returns the names of the fields that are set. The arguments alternate: a name without its prefix, and
// whether this field is set.
func fieldsGiven(fields ...any) (names []string) {
	for i := 0; i < len(fields); i += 2 {
		if set, _ := fields[i+1].(bool); set {
			names = append(names, fmt.Sprintf("Admission.%s", fields[i]))
		}
	}
	return names
}

// checkServerAddress checks that the API server finds the webhook server in at most one way, and in one if it is
// needed.
func (a *ReviewSettings) checkServerAddress() (problems []error) {
	// DetectCluster is not counted: it can be combined with a URL or a Tunnel for other clusters.
	ways := fieldsGiven("Service", a.Service != "", "URL", a.URL != "", "Tunnel", a.Tunnel != nil)
	if len(ways) > 1 {
		problems = append(problems, fmt.Errorf("%s: each of them is a way to the operator, and the API server takes "+
			"one: leave the others out", strings.Join(ways, ", ")))
	}
	// With DetectCluster, the API server calls this machine; with a Service, it calls pods.
	if a.Service != "" && a.DetectCluster {
		problems = append(problems, errors.New("Admission.DetectCluster: with a Service, the operator is in the "+
			"cluster, and not on your machine beside it: leave one of them out"))
	}
	// Managed configurations contain the address, so the operator must be able to determine it.
	if a.Managed != "" && len(ways) == 0 && !a.DetectCluster {
		problems = append(problems, errors.New("Admission.Managed: it is not known where the API server finds the "+
			"operator: set Admission.Service in a cluster; outside of it, Admission.URL, Admission.DetectCluster or "+
			"Admission.Tunnel"))
	}
	// The address of a tunnel or of a detected cluster is known only at run time. Only managed configurations are
	// updated with it.
	for _, way := range fieldsGiven("Tunnel", a.Tunnel != nil, "DetectCluster", a.DetectCluster) {
		if a.Managed == "" {
			problems = append(problems, fmt.Errorf("%s: the API server would not get the address the way: set "+
				"Admission.Managed", way))
		}
	}
	return problems
}

// certificateFields returns the names of the fields that provide a certificate.
func (a *ReviewSettings) certificateFields() []string {
	return fieldsGiven("CertificateDir", a.CertificateDir != "", "Secret", a.Secret != "", "SelfSigned", a.SelfSigned)
}

// checkCertificates checks that there is at most one source of certificates, and that its requirements are met.
func (a *ReviewSettings) checkCertificates() (problems []error) {
	if sources := a.certificateFields(); len(sources) > 1 {
		problems = append(problems, fmt.Errorf("%s: each of them is a certificate, and there can be one: leave the "+
			"others out", strings.Join(sources, ", ")))
	}
	// A webhook entry has only one CA bundle, so all replicas behind a Service must share one certificate.
	if a.SelfSigned && a.Service != "" {
		problems = append(problems, errors.New("Admission.SelfSigned: behind a Service, there may be several "+
			"processes, each with a certificate of its own: leave it out, and the operator keeps one in a Secret"))
	}
	// A certificate must list its hosts, and they follow from these settings.
	if a.Secret != "" && a.Service == "" && a.URL == "" && !a.DetectCluster {
		problems = append(problems, errors.New("Admission.Secret: it is not known which hosts the certificate is for: "+
			"set Admission.Service or Admission.URL"))
	}
	// ExtraHosts only affect certificates that the operator creates.
	for _, other := range fieldsGiven("CertificateDir", a.CertificateDir != "", "Insecure", a.Insecure) {
		if len(a.ExtraHosts) > 0 {
			problems = append(problems, fmt.Errorf("Admission.ExtraHosts: with %s, the operator makes no certificate: "+
				"leave one of them out", other))
		}
	}
	// The server needs the CAs that sign the certificates of clients.
	if a.RequireClientCertificate && a.ClientCA == "" {
		problems = append(problems, errors.New("Admission.RequireClientCertificate: it is not known whose "+
			"certificates are to be taken: set Admission.ClientCA"))
	}
	return problems
}

// checkServerConflicts checks settings that contradict a server without TLS, or a server that the user provides.
func (a *ReviewSettings) checkServerConflicts() (problems []error) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("Admission."+format, args...))
	}
	sources := a.certificateFields()
	// Without TLS, a certificate would have no effect.
	if a.Insecure && len(sources) > 0 {
		wrong("Insecure: there is no TLS, so no client sees the certificate of %s: leave one of them out", sources[0])
	}
	// The API server only calls https URLs.
	if a.Insecure && a.DetectCluster {
		wrong("Insecure: the API server does not call webhooks without TLS, which DetectCluster prepares: leave one " +
			"of them out")
	}
	foreign := a.foreignBundleFields()
	// A foreign CA has signed a certificate that the operator does not have. It does not match the operator's own
	// certificate.
	if len(foreign) > 0 && len(sources) > 0 {
		problems = append(problems, fmt.Errorf(
			"%s: the CA is that of %s: leave one of them out", foreign[0], sources[0],
		))
	}
	if len(foreign) > 1 {
		// CAFile and CABundle are two forms of the same setting.
		problems = append(problems, fmt.Errorf(
			"%s and %s mean the same: leave one of them out", foreign[0], foreign[1],
		))
	}
	switch {
	// ClientCA configures the webhook server that the operator creates, and requires TLS.
	case a.ClientCA != "" && a.Server != nil:
		wrong("ClientCA: Server decides on its clients by itself: give it ClientCAs in its tls.Config")
	case a.ClientCA != "" && a.Insecure:
		wrong("ClientCA: without TLS, clients show no certificates: leave Insecure out")
	}
	// TLSOpts only affect the TLS server that the operator creates.
	for _, other := range fieldsGiven("Server", a.Server != nil, "Insecure", a.Insecure) {
		if len(a.TLSOpts) > 0 {
			wrong("TLSOpts: with %s, they have no effect: leave one of them out", other)
		}
	}
	if a.Address != "" && a.Server != nil {
		// A given server already has its address.
		wrong("Address: Server decides by itself where it listens: leave one of them out")
	}
	return problems
}

// CheckServer returns an error if the settings are not sufficient to serve admission handlers. Call it only if there
// are such handlers. It returns only the first error, because each check assumes that the earlier ones have passed.
func (a *ReviewSettings) CheckServer(program bool) error {
	// In a program, a Service implies a Secret with the certificate, and development settings imply a certificate in
	// memory.
	certified := len(a.certificateFields()) > 0 || program && (a.Service != "" || a.isSelfSigned()) &&
		!a.hasForeignTLS()
	switch {
	case program && a.ClientCA != "" && a.clientVerification().CheckFile() != nil:
		// The file is read here already, so a missing one is found before the first request.
		return fmt.Errorf("Admission.ClientCA: %w", a.clientVerification().CheckFile())
	case program && len(a.foreignBundleFields()) > 0 && !a.hasForeignTLS():
		return fmt.Errorf("%s: the CA is that of the operator's own certificate: leave it out, or set "+
			"Admission.Insecure or Admission.Server, which leave TLS to others", a.foreignBundleFields()[0])
	case certified:
		return nil
	case a.DumpCA != "" && len(a.foreignBundleFields()) == 0 && (!program || a.hasForeignTLS()):
		// Without a source of a certificate here, there is no CA to write to the file.
		return errors.New("Admission.DumpCA: only the webhook server knows its certificate: set " +
			"Admission.CertificateDir or Admission.Secret, or leave it out")
	case program && !a.hasForeignTLS():
		// FinalizerOnCreate adds a handler that the user did not register, so the error mentions it.
		who := "there are handlers of admission"
		if a.FinalizerOnCreate {
			who += ", that of FinalizerOnCreate among them"
		}
		//nolint:staticcheck // the text begins with the name of a field
		return fmt.Errorf("Admission: %s, and no certificate to serve them with: set Admission.Service or "+
			"Admission.CertificateDir in a cluster, Admission.SelfSigned for development", who)
	default:
		// The project's manager, a given Server or a proxy provides the certificate.
		return nil
	}
}

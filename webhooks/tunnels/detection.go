package tunnels

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// dialTimeout is for one connection to the API server.
const dialTimeout = 10 * time.Second

// clusters are those on the developer's machine whose pods and API servers have a name for that machine. They are
// recognised by words in the names of the API server's certificate.
var clusters = []struct {
	host  string
	words []string
}{
	{"host.k3d.internal", []string{"k3s"}},
	{"host.minikube.internal", []string{"minikube", "minikubeca"}},
	{"host.docker.internal", []string{"docker-desktop", "docker-for-desktop", "kubernetes.docker.internal"}},
}

// HostFor is the name by which a cluster on this machine finds the machine: of k3d, minikube or Docker Desktop. It is
// empty for any other cluster. The certificate is that of the API server, nil if it has none; the version is its
// gitVersion. Kopf: WebhookAutoServer.
func HostFor(certificate *x509.Certificate, version string) string {
	if certificate != nil {
		words := wordsOf(certificate)
		for _, cluster := range clusters {
			if slices.ContainsFunc(cluster.words, func(word string) bool { return slices.Contains(words, word) }) {
				return cluster.host
			}
		}
	}
	if strings.Contains(version, "+k3s") {
		return clusters[0].host
	}
	return ""
}

// wordsOf are the names that the certificate and its issuer have, in small letters; of those of k3s, the first word,
// as in "k3s-server-ca@1700000000".
func wordsOf(certificate *x509.Certificate) []string {
	names := append([]string{certificate.Subject.CommonName, certificate.Issuer.CommonName}, certificate.DNSNames...)
	names = append(append(names, certificate.Subject.Organization...), certificate.Issuer.Organization...)
	var words []string
	for _, name := range names {
		name = strings.ToLower(name)
		words = append(words, name)
		if first, _, more := strings.Cut(name, "-"); more && first == "k3s" {
			words = append(words, first)
		}
	}
	return words
}

// Certificate asks the API server for its certificate; nil for one without TLS.
func Certificate(ctx context.Context, config *rest.Config) (*x509.Certificate, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q of the API server: %w", config.Host, err)
	}
	if server.Scheme != "https" {
		return nil, nil
	}
	port := server.Port()
	if port == "" {
		port = "443"
	}
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates for the API server: %w", err)
	}
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: settings}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(server.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server at %s: %w", config.Host, err)
	}
	defer connection.Close()
	secure, is := connection.(*tls.Conn)
	if !is || len(secure.ConnectionState().PeerCertificates) == 0 {
		return nil, nil
	}
	return secure.ConnectionState().PeerCertificates[0], nil
}

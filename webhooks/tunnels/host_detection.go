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

// dialTimeout limits one connection to the API server.
const dialTimeout = 10 * time.Second

// developmentClusters are the clusters for development that have a name for the machine on which they run. Pods and API
// servers resolve it. Each is identified by words in the certificate of its API server, as in Kopf.
var developmentClusters = []struct {
	host  string
	words []string
}{
	{"host.k3d.internal", []string{"k3s"}},
	{"host.minikube.internal", []string{"minikube", "minikubeca"}},
	{"host.docker.internal", []string{"docker-desktop", "docker-for-desktop", "kubernetes.docker.internal"}},
}

// HostFor returns the name of this machine in a cluster of k3d, minikube or Docker Desktop that runs on it, or "" for
// other clusters. The certificate is that of the API server, or nil. The version is its gitVersion. Kopf:
// WebhookAutoServer.
func HostFor(certificate *x509.Certificate, version string) string {
	if certificate != nil {
		words := certificateWords(certificate)
		for _, cluster := range developmentClusters {
			if slices.ContainsFunc(cluster.words, func(word string) bool { return slices.Contains(words, word) }) {
				return cluster.host
			}
		}
	}
	// k3s is also marked in the version.
	if strings.Contains(version, "+k3s") {
		return developmentClusters[0].host
	}
	return ""
}

// certificateWords returns the names of the certificate and its issuer in lower case. For names of k3s, it adds the
// first word, such as that of "k3s-server-ca@1700000000".
func certificateWords(certificate *x509.Certificate) []string {
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

// Certificate returns the certificate of the API server, or nil without TLS. It opens a separate connection.
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
	// Without explicit settings, the CAs of the system apply.
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
	// The handshake is complete after the dial, so the certificate is known.
	defer connection.Close()
	secure, is := connection.(*tls.Conn)
	if !is || len(secure.ConnectionState().PeerCertificates) == 0 {
		return nil, nil
	}
	return secure.ConnectionState().PeerCertificates[0], nil
}

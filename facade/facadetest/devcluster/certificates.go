package devcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateLifetime is longer than any development cluster runs. Clients trust the authority for the whole time.
const certificateLifetime = 365 * 24 * time.Hour

// newCertificates creates a certificate authority for this cluster, and a serving certificate for loopback addresses,
// including the address of the listener. It returns the authority in PEM. The authority's key is discarded, so that it
// cannot sign any other certificate.
func newCertificates(at net.Addr) (serving tls.Certificate, authority []byte, err error) {
	// Root certificate: it signs the serving certificate and nothing else.
	root := certificateTemplate("devcluster")
	root.IsCA, root.BasicConstraintsValid = true, true
	root.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return serving, nil, fmt.Errorf("generating the authority's key: %w", err)
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return serving, nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	// Serving certificate: kubectl verifies it against the host of the kubeconfig, so it lists all loopback addresses.
	leaf := certificateTemplate("kube-apiserver")
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames = []string{"localhost"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if tcp, ok := at.(*net.TCPAddr); ok {
		leaf.IPAddresses = append(leaf.IPAddresses, tcp.IP)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return serving, nil, fmt.Errorf("generating the server's key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
	if err != nil {
		return serving, nil, fmt.Errorf("signing the server's certificate: %w", err)
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority, nil
}

// certificateTemplate returns the fields that both certificates have in common.
func certificateTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand does not fail
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		// The hour before tolerates a clock that is set back.
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

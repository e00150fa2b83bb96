package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity is longer than any control plane lives; the hour before covers a clock that is put back.
const validity = 365 * 24 * time.Hour

// authority signs the certificates of one control plane, for its server and for its users alike.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// pair is a certificate and its key, both in PEM.
type pair struct{ certificate, key []byte }

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := template(pkix.Name{CommonName: "controlplane"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

func (a *authority) pem() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// server signs a certificate for this machine's own addresses and for the names that pods would use.
func (a *authority) server() (pair, error) {
	t := template(pkix.Name{CommonName: "kube-apiserver"})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(serviceIP)}
	return a.sign(t)
}

// user signs a certificate that makes its holder a Kubernetes user.
func (a *authority) user(name string, groups []string) (pair, error) {
	t := template(pkix.Name{CommonName: name, Organization: groups})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(t)
}

func (a *authority) sign(t *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", t.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	return pair{certificate: encode("CERTIFICATE", der), key: keyPEM}, err
}

func template(subject pkix.Name) *x509.Certificate {
	// crypto/rand ends the program rather than fail
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	return key, nil
}

// encodeKey uses the older of the two formats, the only one that kube-apiserver takes for service accounts.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// save writes a file that its owner alone may read.
func save(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing the control plane's state: %w", err)
	}
	return nil
}

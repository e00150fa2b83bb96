package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

const (
	// clockSkew is the tolerated clock skew: a new certificate is valid for clients whose clocks are behind by this
	// time.
	clockSkew = 5 * time.Minute
	// inMemoryLifetime is the lifetime of a certificate in memory. It exceeds that of any process that is started by
	// hand.
	inMemoryLifetime = 365 * 24 * time.Hour
)

// pair is a self-signed certificate with its key: in PEM as the Secret stores them, and parsed.
type pair struct {
	cert, key []byte
	// leaf is the parsed certificate, and pair what a server needs.
	leaf           *x509.Certificate
	tlsCertificate *tls.Certificate
}

// newPair creates a certificate for names and IP addresses. It is valid from now on, minus the skew.
func newPair(hosts []string, lifetime time.Duration) (*pair, error) {
	if len(hosts) == 0 {
		return nil, errors.New("making a certificate: it needs a host at least")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	now := time.Now()
	// The certificate is its own CA: clients verify it by itself, so no CA key has to be stored. CreateCertificate
	// chooses a random serial number.
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	// Go clients, such as API servers, ignore the common name, so each host must be an alternative name.
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %v: %w", hosts, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return parsePair(encodePEM("CERTIFICATE", cert), encodePEM("PRIVATE KEY", private))
}

// parsePair parses a pair. It returns an error if the key does not belong to the certificate.
func parsePair(cert, key []byte) (*pair, error) {
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	return &pair{cert, key, both.Leaf, &both}, nil
}

// issuedAt returns the time when the certificate was created.
func (p *pair) issuedAt() time.Time { return p.leaf.NotBefore.Add(clockSkew) }

// isValidAt reports whether clients accept the certificate at this time. A replica with a fast clock creates
// certificates that start in the future.
func (p *pair) isValidAt(now time.Time) bool {
	return p != nil && !now.Before(p.leaf.NotBefore) && now.Before(p.leaf.NotAfter)
}

// isDueForRenewal reports whether the certificate is due for renewal.
func (p *pair) isDueForRenewal(now time.Time) bool {
	// The skew is not a part of the lifetime.
	life := p.leaf.NotAfter.Sub(p.issuedAt())
	return now.Sub(p.issuedAt()) >= time.Duration(renewalFraction*float64(life))
}

// hasSameCertificate reports whether both have the same certificate. Nil only equals nil.
func (p *pair) hasSameCertificate(other *pair) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.leaf.Equal(other.leaf)
}

// coversHosts reports whether the certificate is valid for all of the hosts.
func (p *pair) coversHosts(hosts ...string) bool {
	for _, host := range hosts {
		if p.leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// hostNames returns the hosts of the certificate.
func (p *pair) hostNames() []string {
	hosts := slices.Clone(p.leaf.DNSNames)
	for _, address := range p.leaf.IPAddresses {
		hosts = append(hosts, address.String())
	}
	return hosts
}

// isSelfSigned reports whether the certificate is self-signed, as are all certificates of this package.
func (p *pair) isSelfSigned() bool { return p.leaf.CheckSignatureFrom(p.leaf) == nil }

// encodePEM encodes a PEM block.
func encodePEM(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

// selfSigned is the source of a certificate that does not change.
type selfSigned struct {
	alwaysReady
	*pair
}

// SelfSignedSource creates a certificate in memory for these names and addresses. The first one is the common name. It
// is for development: other processes have different certificates, and the certificate is lost with the process.
func SelfSignedSource(hosts ...string) (Source, error) {
	made, err := newPair(hosts, inMemoryLifetime)
	if err != nil {
		return nil, err
	}
	return selfSigned{pair: made}, nil
}

// Run implements Source.
func (s selfSigned) Run(ctx context.Context, told func(bundle []byte)) error {
	told(s.cert)
	<-ctx.Done()
	return nil
}

// GetCertificate implements Source.
func (s selfSigned) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.pair.tlsCertificate, nil
}

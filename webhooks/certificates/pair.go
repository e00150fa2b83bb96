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
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// skew is how much the clocks of others may be behind.
	skew = 5 * time.Minute
	// developing is how long a pair in memory lasts: longer than any process that is started by hand.
	developing = 365 * 24 * time.Hour
	// serialBits are what RFC 5280 allows for.
	serialBits = 128
)

// pair is a certificate that vouches for itself, and its key, in PEM.
type pair struct {
	cert, key []byte
	leaf      *x509.Certificate
	pair      *tls.Certificate
}

// newPair makes a certificate for names and addresses, from now on.
func newPair(hosts []string, lifetime time.Duration) (*pair, error) {
	if len(hosts) == 0 {
		return nil, errors.New("making a certificate: it needs a host at least")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits-1))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
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
	return readPair(inPEM("CERTIFICATE", cert), inPEM("PRIVATE KEY", private))
}

// readPair reads what a pair says.
func readPair(cert, key []byte) (*pair, error) {
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	return &pair{cert, key, both.Leaf, &both}, nil
}

// issued is when the certificate was made.
func (p *pair) issued() time.Time { return p.leaf.NotBefore.Add(skew) }

// isValid reports whether clients accept the time of the certificate. One that a clock ahead of the others has made
// begins in the future.
func (p *pair) isValid(now time.Time) bool {
	return p != nil && !now.Before(p.leaf.NotBefore) && now.Before(p.leaf.NotAfter)
}

// isOld reports whether the certificate is due for renewal.
func (p *pair) isOld(now time.Time) bool {
	life := p.leaf.NotAfter.Sub(p.issued())
	return now.Sub(p.issued()) >= time.Duration(renewal*float64(life))
}

// equals reports whether both have the same certificate. Nil equals nil only.
func (p *pair) equals(other *pair) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.leaf.Equal(other.leaf)
}

// covers reports whether the certificate is for all of the hosts.
func (p *pair) covers(hosts ...string) bool {
	for _, host := range hosts {
		if p.leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// hosts are those that the certificate is for.
func (p *pair) hosts() []string {
	hosts := slices.Clone(p.leaf.DNSNames)
	for _, address := range p.leaf.IPAddresses {
		hosts = append(hosts, address.String())
	}
	return hosts
}

// isOurs tells whether the certificate vouches for itself, as those do that are made here.
func (p *pair) isOurs() bool { return p.leaf.CheckSignatureFrom(p.leaf) == nil }

func inPEM(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

// selfSigned is a pair that does not change.
type selfSigned struct {
	ready
	*pair
}

// SelfSigned makes a pair in memory for these names and addresses, of which the first one is the common name. It is for
// development: no other process has it, and it ends with this one.
func SelfSigned(hosts ...string) (Source, error) {
	made, err := newPair(hosts, developing)
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
	return s.pair.pair, nil
}

package certificates

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"time"
)

// Ledger keeps the fingerprints of issued certificates where writers of the Secret cannot write.
type Ledger interface {
	// Read returns the recorded fingerprints, and the CA bundles that API servers use now, in PEM.
	Read(ctx context.Context) (fingerprints []string, published []byte, err error)
	// Record adds fingerprints and puts them before all others. It may remove the last ones.
	Record(ctx context.Context, fingerprints []string) error
}

// provenance says which certificates the operator has issued. Without a ledger, that is every one.
type provenance struct {
	unknown bool // there is no ledger
	// recorded are fingerprints; published are the certificates that API servers trust now.
	recorded  map[string]bool
	published []*x509.Certificate
	// closed refuses what is published but not recorded.
	closed bool
	// longest is the longest lifetime of a certificate of this operator.
	longest time.Duration
}

// isIssued reports whether the certificate is one of the operator. A record does not extend the lifetime.
func (p provenance) isIssued(c *x509.Certificate) bool {
	return p.unknown || p.recorded[fingerprint(c)] && c.NotAfter.Sub(c.NotBefore) <= p.longest
}

// isPublished reports whether API servers trust the certificate already: that of a version without a ledger. It counts
// until a certificate of the ledger has taken its place, so that an upgrade refuses no request.
func (p provenance) isPublished(c *x509.Certificate) bool {
	return !p.closed && slices.ContainsFunc(p.published, c.Equal)
}

// accepts reports whether clients may trust the certificate.
func (p provenance) accepts(c *x509.Certificate) bool { return p.isIssued(c) || p.isPublished(c) }

// fingerprint identifies a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// certificatesIn are the certificates of a bundle in PEM. Everything else is skipped.
func certificatesIn(bundle []byte) (all []*x509.Certificate) {
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
}

// newestFirst sorts certificates in the order that all replicas write them in.
func newestFirst(all []*x509.Certificate) {
	slices.SortFunc(all, func(a, b *x509.Certificate) int {
		return cmp.Or(b.NotBefore.Compare(a.NotBefore), cmp.Compare(fingerprint(a), fingerprint(b)))
	})
}

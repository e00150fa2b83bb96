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

// Ledger stores the fingerprints of issued certificates in a place that writers of the Secret cannot change. Without
// it, anyone who can write the Secret could make API servers trust another CA.
type Ledger interface {
	// Read returns the recorded fingerprints, and the CA bundles that API servers currently use, in PEM.
	Read(ctx context.Context) (fingerprints []string, published []byte, err error)
	// Record adds fingerprints in front of all others. It may remove the last ones.
	Record(ctx context.Context, fingerprints []string) error
}

// provenance decides which certificates come from the operator. Without a ledger, all do.
type provenance struct {
	hasNoLedger bool // there is no ledger
	// recordedFingerprints contains fingerprints. published contains the certificates that API servers trust now.
	recordedFingerprints  map[string]bool
	publishedCertificates []*x509.Certificate
	// rejectsUnrecorded rejects certificates that are published but not recorded.
	rejectsUnrecorded bool
	// maxLifetime is the longest lifetime of a certificate of this operator.
	maxLifetime time.Duration
}

// isIssued reports whether the operator has issued the certificate. The lifetime is checked, too, so a record cannot
// make a long-lived certificate acceptable.
func (p provenance) isIssued(c *x509.Certificate) bool {
	return p.hasNoLedger || p.recordedFingerprints[fingerprintOf(c)] && c.NotAfter.Sub(c.NotBefore) <= p.maxLifetime
}

// isPublished reports whether API servers already trust a certificate without a record, from a version of the operator
// without a ledger. Such a certificate is accepted until a recorded one has replaced it, so an upgrade does not
// interrupt reviews.
func (p provenance) isPublished(c *x509.Certificate) bool {
	return !p.rejectsUnrecorded && slices.ContainsFunc(p.publishedCertificates, c.Equal)
}

// isAccepted reports whether clients may trust the certificate.
func (p provenance) isAccepted(c *x509.Certificate) bool { return p.isIssued(c) || p.isPublished(c) }

// fingerprintOf returns the SHA-256 digest of the certificate in hex.
func fingerprintOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// parseCertificates returns the certificates of a bundle in PEM, and skips everything else.
func parseCertificates(bundle []byte) (all []*x509.Certificate) {
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		// One malformed certificate must not make all others unknown.
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
}

// sortNewestFirst sorts certificates. All replicas must write them in the same order: otherwise, they would overwrite
// each other's bundles forever.
func sortNewestFirst(all []*x509.Certificate) {
	slices.SortFunc(all, func(a, b *x509.Certificate) int {
		return cmp.Or(b.NotBefore.Compare(a.NotBefore), cmp.Compare(fingerprintOf(a), fingerprintOf(b)))
	})
}

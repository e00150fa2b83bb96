package certificates

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"
)

// The keys of the Secret. The first two are those of Secrets of the type kubernetes.io/tls, and the third is a
// convention of cert-manager and others. So proxies can mount the Secret.
const (
	certKey, privateKey, bundleKey = "tls.crt", "tls.key", "ca.crt"
	nextCertKey, nextPrivateKey    = "next.crt", "next.key"
)

const (
	// renewalFraction is the fraction of the lifetime after which a certificate is replaced.
	renewalFraction = 2.0 / 3
	// maxTrustedCertificates limits the number of certificates in the bundle. Rotation alone needs three.
	maxTrustedCertificates = 8
)

// secretContent is the content of the Secret, which all replicas share. The current pair is in use. The next pair, if
// any, is published before it is used. The bundle contains the certificates of both, and former ones that have not
// expired.
type secretContent struct {
	current, next *pair
	bundle        []byte
}

// parseSecretContent reads the content of the Secret. An unreadable pair counts as missing, so that it is replaced.
func parseSecretContent(data map[string][]byte) secretContent {
	s := secretContent{bundle: data[bundleKey]}
	s.current, _ = parsePair(data[certKey], data[privateKey]) // nil after an error
	s.next, _ = parsePair(data[nextCertKey], data[nextPrivateKey])
	return s
}

// mergedData returns the new content of the Secret. Keys of other programs stay.
func (s secretContent) mergedData(former map[string][]byte) map[string][]byte {
	data := maps.Clone(former)
	if data == nil {
		data = map[string][]byte{}
	}
	data[certKey], data[privateKey], data[bundleKey] = s.current.cert, s.current.key, s.bundle
	// A next pair that has become the current one must disappear.
	delete(data, nextCertKey)
	delete(data, nextPrivateKey)
	if s.next != nil {
		data[nextCertKey], data[nextPrivateKey] = s.next.cert, s.next.key
	}
	return data
}

// allCertificates returns all certificates in the Secret.
func (s secretContent) allCertificates() []*x509.Certificate {
	all := parseCertificates(s.bundle)
	for _, p := range []*pair{s.current, s.next} {
		if p != nil {
			all = append(all, p.leaf)
		}
	}
	return all
}

// withAcceptedPairs removes the pairs that are not valid now, or that the operator has not issued. A current pair that
// a version without a ledger has published stays until its successor is in use.
func (s secretContent) withAcceptedPairs(now time.Time, by provenance) secretContent {
	if !s.current.isValidAt(now) || !by.isAccepted(s.current.leaf) {
		s.current = nil
	}
	// An unrecorded next pair is not in use yet, so it can be dropped without a successor.
	if !s.next.isValidAt(now) || !by.isIssued(s.next.leaf) {
		s.next = nil
	}
	return s
}

// withKnownPairs adds the pairs of this process that are missing in the Secret, because the Secret was deleted or
// damaged. Clients already trust them, but not a new certificate.
func (s secretContent) withKnownPairs(known secretContent) secretContent {
	if s.current == nil {
		s.current = known.current
	}
	// A pair that is older than the current one is not a successor: it has already been replaced.
	lost := s.next == nil && known.next != nil && !known.next.hasSameCertificate(s.current)
	if lost && (s.current == nil || known.next.issuedAt().After(s.current.issuedAt())) {
		s.next = known.next
	}
	if s.next.hasSameCertificate(s.current) {
		s.next = nil
	}
	return s
}

// advancePairs returns the content that the Secret should have now. All replicas compute the same result, except for
// new pairs: the first replica that writes its pair wins. If renew is set, the current pair gets a successor at once. A
// successor keeps waiting as the next pair until all clients trust it. Only a missing current pair is replaced without
// that delay.
func (s secretContent) advancePairs(now time.Time, o Rotation, renew bool) (secretContent, error) {
	// The next pair becomes the current one when all clients trust it, or if there is no alternative.
	if s.next != nil && (s.current == nil || s.next.isKnownToClients(now, o.Overlap)) {
		s.current, s.next = s.next, nil
	}
	var err error
	if s.current == nil {
		// No pair in the Secret is acceptable for clients, so waiting would not help.
		s.current, err = newPair(o.Hosts, o.Lifetime)
		return s, err
	}
	// A successor is needed if the hosts have changed, if the pair is old, or if renew is set. Only one can be pending,
	// so new hosts replace a pending successor.
	hosts := o.Hosts
	switch {
	case s.next != nil && !s.next.coversHosts(hosts...):
		hosts = mergeHosts(hosts, s.next.hostNames())
	case s.next == nil && !s.current.coversHosts(hosts...):
		hosts = mergeHosts(hosts, s.current.hostNames())
	case s.next != nil || !renew && !s.current.isDueForRenewal(now):
		return s, nil
	}
	s.next, err = newPair(hosts, o.Lifetime)
	return s, err
}

// mergeHosts returns all hosts of both lists. During an update, replicas of two versions can have different hosts, and
// each needs all of its own.
func mergeHosts(hosts, more []string) []string {
	all := slices.Clone(hosts)
	for _, host := range more {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// isKnownToClients reports whether the certificate is old enough for all clients to trust it.
func (p *pair) isKnownToClients(now time.Time, overlap time.Duration) bool {
	return !now.Before(p.issuedAt().Add(overlap))
}

// servingPair returns the pair to serve a host with: the newest one of the Secret that all clients trust, or else the
// one that this process has held for the longest time. It returns nil if no valid pair covers the host.
func (s secretContent) servingPair(now time.Time, overlap time.Duration, host string, held []*pair) *pair {
	for _, p := range []*pair{s.next, s.current} {
		if p.isValidAt(now) && p.coversHosts(host) && p.isKnownToClients(now, overlap) {
			return p
		}
	}
	// These pairs are in the bundle for as long as this process holds them.
	for _, p := range held {
		if p.isValidAt(now) && p.coversHosts(host) {
			return p
		}
	}
	return nil
}

// trustedBundle returns the bundle: the certificates of both pairs, of those that this process serves, and former ones
// that have not expired. It also returns the certificates that it drops from the Secret, because the operator has not
// issued them.
func (s secretContent) trustedBundle(
	now time.Time, by provenance, held []*pair,
) (bundle []byte, dropped []*x509.Certificate) {
	listed := parseCertificates(s.bundle)
	former := slices.Concat(listed, by.publishedCertificates)
	all := []*x509.Certificate{s.current.leaf}
	if s.next != nil {
		all = append(all, s.next.leaf)
	}
	for _, p := range held {
		former = append(former, p.leaf)
	}
	// If there are too many certificates, the oldest ones are left out.
	sortNewestFirst(former)
	// Equal certificates are adjacent after sorting.
	for _, c := range slices.CompactFunc(former, (*x509.Certificate).Equal) {
		switch {
		case !now.Before(c.NotAfter) || slices.ContainsFunc(all, c.Equal):
		case by.isAccepted(c) && len(all) < maxTrustedCertificates:
			all = append(all, c)
		case !by.isAccepted(c) && slices.ContainsFunc(listed, c.Equal):
			dropped = append(dropped, c)
		}
	}
	for _, c := range all {
		bundle = append(bundle, encodePEM("CERTIFICATE", c.Raw)...)
	}
	return bundle, dropped
}

// heldPairs returns the pairs that this process may serve with, in the order in which it got them: former ones, then
// those of the Secret.
func (s secretContent) heldPairs(now time.Time, by provenance, former []*pair) []*pair {
	isUseless := func(p *pair) bool { return !p.isValidAt(now) || !by.isAccepted(p.leaf) }
	kept := slices.DeleteFunc(slices.Clone(former), isUseless)
	for _, p := range []*pair{s.current, s.next} {
		if p != nil && !slices.ContainsFunc(kept, p.hasSameCertificate) {
			kept = append(kept, p)
		}
	}
	// Each pair takes a place in the bundle, so the oldest are removed. The pairs of the Secret always stay.
	for len(kept) > maxTrustedCertificates/2 {
		oldest := slices.IndexFunc(kept, func(p *pair) bool {
			return !p.hasSameCertificate(s.current) &&
				!p.hasSameCertificate(s.next)
		})
		kept = slices.Delete(kept, oldest, oldest+1)
	}
	return kept
}

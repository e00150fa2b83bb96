package certificates

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"
)

// The keys of the Secret. The first three are as everywhere, so that others may mount it.
const (
	certKey, privateKey, bundleKey = "tls.crt", "tls.key", "ca.crt"
	nextCertKey, nextPrivateKey    = "next.crt", "next.key"
)

const (
	// renewal is the share of the lifetime after which a certificate gets its successor.
	renewal = 2.0 / 3
	// mostTrusted is how many certificates the bundle has at most. Rotation alone needs three.
	mostTrusted = 8
)

// shared is the content of the Secret: the pair in use; the next one, if there is one, which is published before it is
// used; and the certificates of both, with former ones that have not expired.
type shared struct {
	current, next *pair
	bundle        []byte
}

// readShared reads the Secret. A pair that cannot be read counts as missing.
func readShared(data map[string][]byte) shared {
	s := shared{bundle: data[bundleKey]}
	if p, err := readPair(data[certKey], data[privateKey]); err == nil {
		s.current = p
	}
	if p, err := readPair(data[nextCertKey], data[nextPrivateKey]); err == nil {
		s.next = p
	}
	return s
}

// data is the new content of the Secret. Other keys stay.
func (s shared) data(former map[string][]byte) map[string][]byte {
	data := maps.Clone(former)
	if data == nil {
		data = map[string][]byte{}
	}
	data[certKey], data[privateKey], data[bundleKey] = s.current.cert, s.current.key, s.bundle
	delete(data, nextCertKey)
	delete(data, nextPrivateKey)
	if s.next != nil {
		data[nextCertKey], data[nextPrivateKey] = s.next.cert, s.next.key
	}
	return data
}

// certificates are all certificates of the Secret.
func (s shared) certificates() []*x509.Certificate {
	all := certificatesIn(s.bundle)
	for _, p := range []*pair{s.current, s.next} {
		if p != nil {
			all = append(all, p.leaf)
		}
	}
	return all
}

// accepted leaves only pairs that are valid now and that the operator has issued. A current pair that a version
// without a ledger has published stays until its successor is in use.
func (s shared) accepted(now time.Time, by provenance) shared {
	if !s.current.isValid(now) || !by.accepts(s.current.leaf) {
		s.current = nil
	}
	if !s.next.isValid(now) || !by.isIssued(s.next.leaf) {
		s.next = nil
	}
	return s
}

// restored adds the pairs of this process that the Secret has lost: it was deleted, or damaged by others.
func (s shared) restored(known shared) shared {
	if s.current == nil {
		s.current = known.current
	}
	lost := s.next == nil && known.next != nil && !known.next.equals(s.current)
	if lost && (s.current == nil || known.next.issued().After(s.current.issued())) {
		s.next = known.next
	}
	if s.next.equals(s.current) {
		s.next = nil
	}
	return s
}

// advanced is the content that the Secret should have now. All replicas come to the same result, except for new pairs:
// the first replica to write its own wins. If renew is set, the current pair gets a successor at once.
func (s shared) advanced(now time.Time, o Rotation, renew bool) (shared, error) {
	if s.next != nil && (s.current == nil || s.next.isKnown(now, o.Overlap)) {
		s.current, s.next = s.next, nil
	}
	var err error
	if s.current == nil {
		// The Secret has no pair that clients accept, so waiting would not help.
		s.current, err = newPair(o.Hosts, o.Lifetime)
		return s, err
	}
	hosts := o.Hosts
	switch {
	case s.next != nil && !s.next.covers(hosts...):
		hosts = union(hosts, s.next.hosts())
	case s.next == nil && !s.current.covers(hosts...):
		hosts = union(hosts, s.current.hosts())
	case s.next != nil || !renew && !s.current.isOld(now):
		return s, nil
	}
	s.next, err = newPair(hosts, o.Lifetime)
	return s, err
}

// union is for replicas of two versions, which may have other hosts: each needs all of its own.
func union(hosts, more []string) []string {
	all := slices.Clone(hosts)
	for _, host := range more {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// isKnown reports whether all clients have had the time to learn about the certificate.
func (p *pair) isKnown(now time.Time, overlap time.Duration) bool {
	return !now.Before(p.issued().Add(overlap))
}

// used is the pair to serve a host with: the newest one of the Secret that all clients know; otherwise the one that
// this process has had for the longest time. It is nil if no valid pair is for the host.
func (s shared) used(now time.Time, overlap time.Duration, host string, held []*pair) *pair {
	for _, p := range []*pair{s.next, s.current} {
		if p.isValid(now) && p.covers(host) && p.isKnown(now, overlap) {
			return p
		}
	}
	for _, p := range held {
		if p.isValid(now) && p.covers(host) {
			return p
		}
	}
	return nil
}

// trusted is the bundle: the certificates of both pairs, of those that this process serves, and former ones, unless
// they have expired. Dropped are those of the Secret that the operator has not issued.
func (s shared) trusted(now time.Time, by provenance, held []*pair) (bundle []byte, dropped []*x509.Certificate) {
	listed := certificatesIn(s.bundle)
	former := slices.Concat(listed, by.published)
	all := []*x509.Certificate{s.current.leaf}
	if s.next != nil {
		all = append(all, s.next.leaf)
	}
	for _, p := range held {
		former = append(former, p.leaf)
	}
	newestFirst(former)
	for _, c := range slices.CompactFunc(former, (*x509.Certificate).Equal) {
		switch {
		case !now.Before(c.NotAfter) || slices.ContainsFunc(all, c.Equal):
		case by.accepts(c) && len(all) < mostTrusted:
			all = append(all, c)
		case !by.accepts(c) && slices.ContainsFunc(listed, c.Equal):
			dropped = append(dropped, c)
		}
	}
	for _, c := range all {
		bundle = append(bundle, inPEM("CERTIFICATE", c.Raw)...)
	}
	return bundle, dropped
}

// keep are the pairs that this process may serve with, in the order in which it got them: former ones, and those of the
// Secret.
func (s shared) keep(now time.Time, by provenance, former []*pair) []*pair {
	isUseless := func(p *pair) bool { return !p.isValid(now) || !by.accepts(p.leaf) }
	kept := slices.DeleteFunc(slices.Clone(former), isUseless)
	for _, p := range []*pair{s.current, s.next} {
		if p != nil && !slices.ContainsFunc(kept, p.equals) {
			kept = append(kept, p)
		}
	}
	for len(kept) > mostTrusted/2 {
		oldest := slices.IndexFunc(kept, func(p *pair) bool { return !p.equals(s.current) && !p.equals(s.next) })
		kept = slices.Delete(kept, oldest, oldest+1)
	}
	return kept
}

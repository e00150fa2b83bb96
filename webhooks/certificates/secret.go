package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// The keys of the Secret. The first three are as everywhere, so that others may mount it.
const (
	certKey, privateKey, bundleKey = "tls.crt", "tls.key", "ca.crt"
	nextCertKey, nextPrivateKey    = "next.crt", "next.key"
)

// renewal is when a certificate gets its successor: when this share of its life is over.
const renewal = 2.0 / 3

// shared is what the replicas have in the Secret: the pair that is in use; the next one, if there is one already, which
// clients get to know before it is used; and the certificates of both, with former ones that have not expired.
type shared struct {
	current, next *pair
	bundle        []byte
}

// readShared reads the Secret. A pair that cannot be read is none.
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

// data is what goes into the Secret. What others have there stays.
func (s shared) data(former map[string][]byte) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range former {
		data[key] = value
	}
	data[certKey], data[privateKey], data[bundleKey] = s.current.cert, s.current.key, s.bundle
	delete(data, nextCertKey)
	delete(data, nextPrivateKey)
	if s.next != nil {
		data[nextCertKey], data[nextPrivateKey] = s.next.cert, s.next.key
	}
	return data
}

// advanced is what the Secret should have by now. It is the same for all replicas, but for new pairs: the first one to
// write its own wins.
func (s shared) advanced(now time.Time, o Rotation) (shared, error) {
	var err error
	if s.next != nil && (s.current == nil || s.used(now, o) == s.next) {
		s.current, s.next = s.next, nil
	}
	if s.current == nil || !now.Before(s.current.leaf.NotAfter) {
		// Nobody can trust what was there before, so there is nothing to wait for.
		if s.current, err = newPair(o.Hosts, o.Lifetime); err != nil {
			return s, err
		}
		s.next = nil
	}
	life := s.current.leaf.NotAfter.Sub(s.current.issued())
	old := now.Sub(s.current.issued()) >= time.Duration(renewal*float64(life))
	hosts := o.Hosts
	switch {
	case s.next != nil && !s.next.covers(hosts):
		hosts = union(hosts, s.next.hosts())
	case s.next == nil && !s.current.covers(hosts):
		hosts = union(hosts, s.current.hosts())
	case s.next != nil || !old:
		s.bundle = s.trusted(now)
		return s, nil
	}
	if s.next, err = newPair(hosts, o.Lifetime); err != nil {
		return s, err
	}
	s.bundle = s.trusted(now)
	return s, nil
}

// union is for replicas of two versions, which may have other hosts: none of them is content with less than its own.
func union(hosts, more []string) []string {
	all := slices.Clone(hosts)
	for _, host := range more {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// used is the pair to serve with: the next one when all clients have had the time to hear of it, and when the current
// one has expired, in any case.
func (s shared) used(now time.Time, o Rotation) *pair {
	if s.next == nil {
		return s.current
	}
	known := !now.Before(s.next.issued().Add(o.Overlap))
	if s.current == nil || known || !now.Before(s.current.leaf.NotAfter) {
		return s.next
	}
	return s.current
}

// trusted are the certificates of both pairs, and those that were in the bundle, unless they have expired.
func (s shared) trusted(now time.Time) []byte {
	all := bytes.Clone(s.current.cert)
	if s.next != nil {
		all = append(all, s.next.cert...)
	}
	for rest := s.bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		text := pem.EncodeToMemory(block)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(certificate.NotAfter) && !bytes.Contains(all, text) {
			all = append(all, text...)
		}
	}
}

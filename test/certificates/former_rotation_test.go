package certificates_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

// formerVersion is the version before certificates were recorded, as it was, without its messages.
func formerVersion(_ *testing.T, _ *cluster, r certificates.Rotation) certificates.Source {
	return &formerRotation{rotation: r}
}

// rotation is one replica's part.
type formerRotation struct {
	rotation certificates.Rotation

	mu    sync.RWMutex
	state secretState
}

// GetCertificate implements Source.
func (r *formerRotation) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	used := r.state.currentPair(time.Now(), r.rotation)
	if used == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return used.tlsCertificate, nil
}

// Check is not in the former version.
func (*formerRotation) Check() error { return nil }

// Run implements certificates.Source.
func (r *formerRotation) Run(ctx context.Context, told func(bundle []byte)) error {
	var last []byte
	for ctx.Err() == nil {
		if err := r.syncState(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if bundle := r.bundle(); !bytes.Equal(bundle, last) {
			last = bundle
			told(bundle)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(r.rotation.Overlap/4, time.Minute)):
		}
	}
	return nil
}

func (r *formerRotation) bundle() []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.bundle
}

// syncState adopts the state of the Secret, and writes a missing successor.
func (r *formerRotation) syncState(ctx context.Context) error {
	for {
		secret, err := r.read(ctx)
		if err != nil {
			return err
		}
		known := readShared(secret.Data)
		wanted, err := known.nextState(time.Now(), r.rotation)
		if err != nil {
			return err
		}
		data := wanted.data(secret.Data)
		if !maps.EqualFunc(data, secret.Data, bytes.Equal) {
			secret.Data = data
			err = r.write(ctx, secret)
		}
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			continue // another replica was faster: its pair counts
		case err != nil:
			return err
		}
		r.mu.Lock()
		r.state = wanted
		r.mu.Unlock()
		return nil
	}
}

func (r *formerRotation) read(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.rotation.Namespace, Name: r.rotation.Name}
	err := r.rotation.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: corev1.SecretTypeTLS,
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return secret, nil
}

func (r *formerRotation) write(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		return r.rotation.Client.Create(ctx, secret, client.FieldOwner(r.rotation.Operator))
	}
	return r.rotation.Client.Update(ctx, secret, client.FieldOwner(r.rotation.Operator))
}

// The keys of the Secret. The first three are as everywhere, so that others may mount it.
const (
	certKey, privateKey, bundleKey = "tls.crt", "tls.key", "ca.crt"
	nextCertKey, nextPrivateKey    = "next.crt", "next.key"
)

// renewal is when a certificate gets its successor: when this share of its life is over.
const renewal = 2.0 / 3

// secretState is the state of the replicas in the Secret: the pair in use; the next pair, if it exists, which clients
// get to know before it is used; and the certificates of both, with former ones that have not expired.
type secretState struct {
	current, next *pair
	bundle        []byte
}

// readShared reads the Secret. A pair that cannot be read is none.
func readShared(data map[string][]byte) secretState {
	s := secretState{bundle: data[bundleKey]}
	if p, err := readPair(data[certKey], data[privateKey]); err == nil {
		s.current = p
	}
	if p, err := readPair(data[nextCertKey], data[nextPrivateKey]); err == nil {
		s.next = p
	}
	return s
}

// data is what goes into the Secret. What others have there stays.
func (s secretState) data(former map[string][]byte) map[string][]byte {
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

// nextState is what the Secret should have by now. It is the same for all replicas, but for new pairs: the first one to
// write its own wins.
func (s secretState) nextState(now time.Time, o certificates.Rotation) (secretState, error) {
	var err error
	if s.next != nil && (s.current == nil || s.currentPair(now, o) == s.next) {
		s.current, s.next = s.next, nil
	}
	if s.current == nil || !now.Before(s.current.leaf.NotAfter) {
		// No client can trust the former state, so there is nothing to wait for.
		if s.current, err = newPair(o.Hosts, o.Lifetime); err != nil {
			return s, err
		}
		s.next = nil
	}
	life := s.current.leaf.NotAfter.Sub(s.current.issueTime())
	old := now.Sub(s.current.issueTime()) >= time.Duration(renewal*float64(life))
	hosts := o.Hosts
	switch {
	case s.next != nil && !s.next.covers(hosts):
		hosts = mergeHosts(hosts, s.next.hosts())
	case s.next == nil && !s.current.covers(hosts):
		hosts = mergeHosts(hosts, s.current.hosts())
	case s.next != nil || !old:
		s.bundle = s.trustBundle(now)
		return s, nil
	}
	if s.next, err = newPair(hosts, o.Lifetime); err != nil {
		return s, err
	}
	s.bundle = s.trustBundle(now)
	return s, nil
}

// mergeHosts is for replicas of two versions, which may have other hosts: none of them is content with less than its
// own.
func mergeHosts(hosts, more []string) []string {
	all := slices.Clone(hosts)
	for _, host := range more {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// currentPair returns the pair to serve with: the next one after all clients have had time to load it, or when the
// present one has expired.
func (s secretState) currentPair(now time.Time, o certificates.Rotation) *pair {
	if s.next == nil {
		return s.current
	}
	known := !now.Before(s.next.issueTime().Add(o.Overlap))
	if s.current == nil || known || !now.Before(s.current.leaf.NotAfter) {
		return s.next
	}
	return s.current
}

// trustBundle are the certificates of both pairs, and those that were in the bundle, unless they have expired.
func (s secretState) trustBundle(now time.Time) []byte {
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

// pair is a certificate that vouches for itself, and its key, in PEM.
type pair struct {
	cert, key      []byte
	leaf           *x509.Certificate
	tlsCertificate *tls.Certificate
}

// newPair makes a certificate for names and addresses, from now on.
func newPair(hosts []string, lifetime time.Duration) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(-5 * time.Minute), NotAfter: now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	template.DNSNames = hosts
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return readPair(inPEM("CERTIFICATE", cert), inPEM("PRIVATE KEY", private))
}

// readPair reads what a pair says.
func readPair(cert, key []byte) (*pair, error) {
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &pair{cert, key, both.Leaf, &both}, nil
}

// issueTime is when the certificate was made.
func (p *pair) issueTime() time.Time { return p.leaf.NotBefore.Add(5 * time.Minute) }

// covers reports whether the certificate is valid for all of the hosts.
func (p *pair) covers(hosts []string) bool {
	for _, host := range hosts {
		if p.leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// hosts are those that the certificate is for.
func (p *pair) hosts() []string {
	return slices.Clone(p.leaf.DNSNames)
}

func inPEM(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

package certificates

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

const (
	// DefaultLifetime is the default lifetime of a certificate. It is renewed after two thirds of that.
	DefaultLifetime = 90 * 24 * time.Hour
	// DefaultOverlap is more than enough time for a bundle to reach the API servers.
	DefaultOverlap = 10 * time.Minute
	// readsPerOverlap is how often the Secret is read within an overlap, so that each replica sees a new pair before it
	// is used.
	readsPerOverlap = 4
	// maxReadInterval is the longest time between two reads. Within this time, replicas see the hosts of other
	// replicas.
	maxReadInterval = time.Minute
	// unreadyTime is how long a replica is not ready after it had to replace a published certificate without an
	// overlap.
	unreadyTime = 90 * time.Second
)

// Rotation is a certificate in a Secret, which all replicas of an operator use. Any replica creates and renews it. A
// new certificate is in the bundle before it is used, and a former one stays there for as long as it may be used. So no
// request fails while clients and replicas change over.
type Rotation struct {
	// Client reads and writes Secrets without a cache: see [NewClient].
	Client client.Client
	// Namespace and Name identify the Secret. It is created if it does not exist.
	Namespace, Name string
	// Operator is the field manager.
	Operator string
	// Hosts are the names and addresses of the server. The first one is the common name.
	Hosts []string
	// Lifetime is the lifetime of a certificate; zero means [DefaultLifetime].
	Lifetime time.Duration
	// Overlap is how long a certificate is in the bundle before it is used; zero means [DefaultOverlap]. It must be
	// less than a quarter of the lifetime.
	Overlap time.Duration
	// Ledger, if set, contains the fingerprints of issued certificates. Pairs and CAs in the Secret without such a
	// record are replaced. If it is nil, the Secret is trusted: writers of the Secret decide which CA is published.
	Ledger Ledger
}

// errForeignCA is the error of a Secret that contains a certificate of another CA, such as one of cert-manager. It must
// not be overwritten.
var errForeignCA = errors.New("has a certificate of another CA: name another Secret, or mount this one and give the " +
	"operator the files")

// NewClient returns a client that can only read and write Secrets, without a cache. It does not use discovery. The
// transport may be nil.
func NewClient(config *rest.Config, transport *http.Client) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	resource := kind.GroupVersion().WithResource("secrets")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(kind, resource, resource, meta.RESTScopeNamespace)
	return client.New(config, client.Options{HTTPClient: transport, Scheme: scheme, Mapper: mapper})
}

// Open validates the settings and returns the source. It does not access the API server.
func (r Rotation) Open() (Source, error) {
	r.Lifetime, r.Overlap = cmp.Or(r.Lifetime, DefaultLifetime), cmp.Or(r.Overlap, DefaultOverlap)
	switch {
	case len(r.Hosts) == 0:
		return nil, errors.New("a certificate in a Secret needs a host at least")
	case r.Overlap < 0 || r.Overlap*4 >= r.Lifetime:
		// A pair is renewed after two thirds of its lifetime, so its successor must be usable well before the end.
		return nil, fmt.Errorf("an overlap of %s is too long for certificates that last %s: it must be less than a "+
			"quarter of that", r.Overlap, r.Lifetime)
	}
	// Certificates start before their creation by the skew, which extends their lifetime.
	by := provenance{hasNoLedger: r.Ledger == nil, maxLifetime: r.Lifetime + clockSkew,
		recordedFingerprints: map[string]bool{}}
	return &rotation{options: r, provenance: by}, nil
}

// rotation is the part of one replica. All replicas run the same steps, and the Secret decides between them.
//
// A certificate starts as the next pair: the replica that creates it records it in the ledger, and writes it to the
// Secret together with the new bundle. All replicas read the Secret several times per overlap and report the bundle.
// After the overlap, they serve with the new certificate, and the next write makes it the current pair. The former
// certificate stays in the bundle until it expires, because replicas and API servers change over at different times.
type rotation struct {
	options       Rotation
	provenance    provenance // only Run uses it, so it needs no lock
	hasReadLedger bool       // the ledger has been read at least once

	// mu guards the fields below: Run writes them, and TLS handshakes read them.
	mu sync.RWMutex
	// lastContent is the content of the Secret after the last successful read.
	lastContent secretContent
	// heldPairs contains the pairs to serve with: those of known, and former ones.
	heldPairs []*pair
	// trustedAt is when clients trust the certificate that had to be used at once. failure is the error of the last
	// read.
	trustedAt   time.Time
	lastReadErr error
}

// GetCertificate implements Source. While the hosts change, requests for a former host get the former certificate.
func (r *rotation) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := time.Now()
	// Clients that connect by an IP address send no server name. They get the certificate for the first host.
	if hello != nil && hello.ServerName != "" {
		if used := r.lastContent.servingPair(now, r.options.Overlap, hello.ServerName, r.heldPairs); used != nil {
			return used.tlsCertificate, nil
		}
	}
	used := r.lastContent.servingPair(now, r.options.Overlap, r.options.Hosts[0], r.heldPairs)
	if used == nil {
		return nil, errors.New("there is no valid certificate yet")
	}
	return used.tlsCertificate, nil
}

// Check implements Source.
func (r *rotation) Check() error {
	_, err := r.GetCertificate(nil)
	r.mu.RLock()
	defer r.mu.RUnlock()
	// The reason for a missing certificate is the error of the last read.
	switch {
	case err != nil && r.lastReadErr != nil:
		return fmt.Errorf("%w: %w", err, r.lastReadErr)
	case err == nil && time.Now().Before(r.trustedAt):
		// A replica that is not ready gets no requests through a Service, so API servers with an old bundle do not
		// fail.
		return errors.New("API servers learn about a new certificate that replaces a lost one")
	default:
		return err
	}
}

// Run implements Source.
func (r *rotation) Run(ctx context.Context, told func(bundle []byte)) error {
	var last []byte
	for ctx.Err() == nil {
		err := r.syncSecret(ctx)
		if ctx.Err() != nil {
			return nil
		}
		// Before the first success, an error can be permanent, such as a missing permission.
		if err != nil && last == nil {
			if err := r.permanentError(err); err != nil {
				return err
			}
		}
		if err != nil {
			logf.FromContext(ctx).Error(err, "Cannot renew the certificate of webhooks; retrying")
		}
		r.mu.Lock()
		r.lastReadErr = err
		bundle := r.lastContent.bundle
		r.mu.Unlock()
		// The bundle is reported even after an error, but an error does not change it.
		if !bytes.Equal(bundle, last) {
			last = bundle
			told(bundle)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(r.options.Overlap/readsPerOverlap, maxReadInterval)):
		}
	}
	return nil
}

// permanentError returns the error of the first read if retries cannot help. Later, the process has a certificate to
// serve with, so it continues.
func (r *rotation) permanentError(err error) error {
	if errors.Is(err, errForeignCA) || apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// explainError adds the missing permission to an error of the Secret, if the API server denies access.
func (r *rotation) explainError(doing string, err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("the operator may not keep its certificate in a Secret: grant it get, create and update of "+
			"Secrets in the namespace %q, or give it certificate files: %w", r.options.Namespace, err)
	}
	return fmt.Errorf("%s the Secret %s/%s: %w", doing, r.options.Namespace, r.options.Name, err)
}

// syncSecret reads the Secret, decides about its new content, writes that if it differs, and starts to use it. It
// starts again if another replica has written the Secret in the meantime.
func (r *rotation) syncSecret(ctx context.Context) error {
	for {
		secret, err := r.getSecret(ctx)
		if err != nil {
			return err
		}
		found := parseSecretContent(secret.Data)
		// Without a ledger, a certificate that is not self-signed shows that another program owns the Secret.
		if r.provenance.hasNoLedger && found.current != nil && !found.current.isSelfSigned() {
			return fmt.Errorf("the Secret %s/%s %w", r.options.Namespace, r.options.Name, errForeignCA)
		}
		if err := r.readLedger(ctx, found); err != nil {
			return err
		}
		wanted, held, err := r.decideContent(ctx, found, secret.ResourceVersion == "")
		if err != nil {
			return err
		}
		data := wanted.mergedData(secret.Data)
		// Replicas only write if something changes. Otherwise, each would cause conflicts for the others.
		if !maps.EqualFunc(data, secret.Data, bytes.Equal) {
			secret.Data = data
			err = r.writeSecret(ctx, secret)
		}
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			continue // another replica was faster, and its pair counts
		case err != nil:
			return r.explainError("writing", err)
		}
		// The pairs are only used after they have been stored.
		r.mu.Lock()
		if r.isSuddenReplacement(wanted.current) {
			r.trustedAt = time.Now().Add(min(unreadyTime, r.options.Overlap))
		}
		r.lastContent, r.heldPairs = wanted, held
		r.mu.Unlock()
		return nil
	}
}

// isSuddenReplacement reports whether a new pair replaces published ones that this process cannot serve with, such as
// after the loss of the Secret. API servers do not trust the new pair yet.
func (r *rotation) isSuddenReplacement(current *pair) bool {
	now := time.Now()
	return r.lastContent.servingPair(now, r.options.Overlap, r.options.Hosts[0], r.heldPairs) == nil &&
		len(r.provenance.publishedCertificates) > 0 &&
		!current.isKnownToClients(now, r.options.Overlap) &&
		!slices.ContainsFunc(r.provenance.publishedCertificates, current.leaf.Equal)
}

// readLedger reads the ledger the first time, and whenever the Secret contains a certificate without a known record:
// another replica may have recorded it. Otherwise, it saves the requests.
func (r *rotation) readLedger(ctx context.Context, found secretContent) error {
	isIssued := func(c *x509.Certificate) bool { return r.provenance.recordedFingerprints[fingerprintOf(c)] }
	all := found.allCertificates()
	if r.provenance.hasNoLedger || r.hasReadLedger &&
		!slices.ContainsFunc(all, func(c *x509.Certificate) bool { return !isIssued(c) }) {
		return nil
	}
	fingerprints, published, err := r.options.Ledger.Read(ctx)
	if err != nil {
		return fmt.Errorf("reading which certificates have been issued: %w", err)
	}
	// Known records are kept: the ledger may have dropped some that are still in use.
	for _, one := range fingerprints {
		r.provenance.recordedFingerprints[one] = true
	}
	// Certificates that were published earlier and are still served count as published, even if the bundle in the
	// cluster has already changed.
	former := r.provenance
	r.provenance.publishedCertificates = parseCertificates(published)
	for _, p := range r.heldPairs {
		if former.isPublished(p.leaf) {
			r.provenance.publishedCertificates = append(r.provenance.publishedCertificates, p.leaf)
		}
	}
	r.hasReadLedger = true
	return nil
}

// decideContent returns the content that the Secret should have, and the pairs to serve with. New certificates are
// recorded before other replicas can read them: a replica replaces pairs that it does not find in the ledger.
func (r *rotation) decideContent(
	ctx context.Context, found secretContent, missing bool,
) (secretContent, []*pair, error) {
	now, by := time.Now(), &r.provenance
	// First, drop the pairs that must not be used, and add those that only this process still has.
	by.rejectsUnrecorded = false
	accepted := found.withAcceptedPairs(now, *by)
	r.warnOfRejected(ctx, now, found)
	former := accepted.withKnownPairs(r.lastContent.withAcceptedPairs(now, *by))
	// Users renew a certificate by deleting the Secret. A current pair without a record needs a successor with one.
	renew := former.current != nil && (missing || !by.isIssued(former.current.leaf))
	wanted, err := former.advancePairs(now, r.options, renew)
	if err != nil {
		return wanted, nil, err
	}
	// The record must be stored before the Secret: see above.
	if err := r.recordIssued(ctx, wanted); err != nil {
		return wanted, nil, err
	}
	// Unrecorded certificates are accepted until a recorded one is current and as old as two overlaps, so that no
	// replica still serves an unrecorded one.
	by.rejectsUnrecorded = by.isIssued(wanted.current.leaf) && wanted.current.isKnownToClients(now, 2*r.options.Overlap)
	held := wanted.heldPairs(now, *by, r.heldPairs)
	bundle, dropped := wanted.trustedBundle(now, *by, held)
	for _, c := range dropped {
		logging.Warn(logf.FromContext(ctx), "Dropped a CA from the Secret of webhooks: this operator has not issued it",
			"secret", r.options.Namespace+"/"+r.options.Name, "fingerprint", fingerprintOf(c))
	}
	wanted.bundle = bundle
	return wanted, held, nil
}

// recordIssued adds new certificates to the ledger, together with those in use. So the ledger, which drops the last
// ones, keeps all that matter.
func (r *rotation) recordIssued(ctx context.Context, wanted secretContent) error {
	var fingerprints []string
	isNew := false
	for _, p := range append([]*pair{wanted.next, wanted.current}, r.heldPairs...) {
		// A certificate that is only accepted because it is published does not get a record.
		if p == nil || r.provenance.hasNoLedger || r.provenance.isPublished(p.leaf) && !r.provenance.isIssued(p.leaf) {
			continue
		}
		isNew = isNew || !r.provenance.isIssued(p.leaf)
		fingerprints = append(fingerprints, fingerprintOf(p.leaf))
	}
	if !isNew {
		return nil
	}
	if err := r.options.Ledger.Record(ctx, fingerprints); err != nil {
		return fmt.Errorf("recording an issued certificate: %w", err)
	}
	for _, one := range fingerprints {
		r.provenance.recordedFingerprints[one] = true
	}
	return nil
}

// warnOfRejected logs the pairs of the Secret that are not used.
func (r *rotation) warnOfRejected(ctx context.Context, now time.Time, found secretContent) {
	log := logf.FromContext(ctx).WithValues("secret", r.options.Namespace+"/"+r.options.Name)
	for _, p := range []*pair{found.current, found.next} {
		switch {
		case p == nil || !now.Before(p.leaf.NotAfter):
		case !r.provenance.isAccepted(p.leaf):
			logging.Warn(log, "Replacing a certificate in the Secret of webhooks: this operator has not issued it",
				"fingerprint", fingerprintOf(p.leaf))
		case !p.isValidAt(now):
			logging.Warn(log, "Replacing a certificate in the Secret of webhooks: it is not valid yet; the clock that "+
				"made it was ahead", "begins", p.leaf.NotBefore)
		}
	}
}

// getSecret returns the Secret, or a new one without a resource version if it does not exist.
func (r *rotation) getSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.options.Namespace, Name: r.options.Name}
	err := r.options.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: corev1.SecretTypeTLS,
		}, nil
	}
	if err != nil {
		return nil, r.explainError("reading", err)
	}
	return secret, nil
}

// writeSecret creates or updates the Secret. The resource version of an update makes a write of another replica a
// conflict.
func (r *rotation) writeSecret(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		return r.options.Client.Create(ctx, secret, client.FieldOwner(r.options.Operator))
	}
	return r.options.Client.Update(ctx, secret, client.FieldOwner(r.options.Operator))
}

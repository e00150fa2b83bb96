package certificates

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
)

const (
	// DefaultLifetime is that of a certificate. It is renewed when two thirds of it are over.
	DefaultLifetime = 90 * 24 * time.Hour
	// DefaultOverlap is plenty for the way of a bundle into the API servers.
	DefaultOverlap = 10 * time.Minute
	// looks is how many times the Secret is looked at within an overlap, so that no replica misses a new pair.
	looks = 4
	// longestLook is how long a replica may not know that others have had other hosts.
	longestLook = time.Minute
)

// Rotation is a certificate in a Secret, which all replicas of an operator use, and which any of them makes and renews.
// A new certificate is in the bundle before it is used, and a former one for as long as it could be: so no request is
// refused while clients and replicas change over.
type Rotation struct {
	// Client reads and writes Secrets, live: see [NewClient].
	Client client.Client
	// Namespace and Name are those of the Secret, which is made if it is not there.
	Namespace, Name string
	// Operator is the field manager.
	Operator string
	// Hosts are the names and addresses of the server; the first one is the common name.
	Hosts []string
	// Lifetime is that of a certificate; zero is [DefaultLifetime].
	Lifetime time.Duration
	// Overlap is how long a certificate is in the bundle before it is used; zero is [DefaultOverlap]. It must be less
	// than a quarter of the lifetime.
	Overlap time.Duration
}

// errForeign is a Secret that is not for this.
var errForeign = errors.New("has a certificate of somebody else: name another one, or mount it and give the operator " +
	"the files")

// NewClient makes a client for Secrets alone, which reads them live. The transport may be nil.
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

// Open checks what is given.
func (r Rotation) Open() (Source, error) {
	r.Lifetime, r.Overlap = cmp.Or(r.Lifetime, DefaultLifetime), cmp.Or(r.Overlap, DefaultOverlap)
	switch {
	case len(r.Hosts) == 0:
		return nil, errors.New("a certificate in a Secret needs a host at least")
	case r.Overlap < 0 || r.Overlap*4 >= r.Lifetime:
		return nil, fmt.Errorf("an overlap of %s is too long for certificates that last %s: it must be less than a "+
			"quarter of that", r.Overlap, r.Lifetime)
	}
	return &rotation{given: r}, nil
}

// rotation is one replica's part.
type rotation struct {
	given Rotation

	mu    sync.RWMutex
	known shared
}

// GetCertificate implements Source.
func (r *rotation) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	used := r.known.used(time.Now(), r.given)
	if used == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return used.pair, nil
}

// Run implements Source.
func (r *rotation) Run(ctx context.Context, told func(bundle []byte)) error {
	var last []byte
	for ctx.Err() == nil {
		err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errForeign):
			return err
		case apierrors.IsForbidden(err) && last == nil:
			return fmt.Errorf("the operator may not keep its certificate in a Secret: grant it get, create and update "+
				"of Secrets in the namespace %q, or give it certificate files: %w", r.given.Namespace, err)
		case err != nil:
			logf.FromContext(ctx).Error(err, "Cannot renew the certificate of webhooks; retrying")
		}
		if bundle := r.bundle(); !bytes.Equal(bundle, last) {
			last = bundle
			told(bundle)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(r.given.Overlap/looks, longestLook)):
		}
	}
	return nil
}

func (r *rotation) bundle() []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.known.bundle
}

// look takes over what the Secret has, and writes what it should have.
func (r *rotation) look(ctx context.Context) error {
	for {
		secret, err := r.read(ctx)
		if err != nil {
			return err
		}
		known := readShared(secret.Data)
		if known.current != nil && !known.current.isOurs() {
			return fmt.Errorf("the Secret %s/%s %w", r.given.Namespace, r.given.Name, errForeign)
		}
		wanted, err := known.advanced(time.Now(), r.given)
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
			return fmt.Errorf("writing the Secret %s/%s: %w", r.given.Namespace, r.given.Name, err)
		}
		r.mu.Lock()
		r.known = wanted
		r.mu.Unlock()
		return nil
	}
}

func (r *rotation) read(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.given.Namespace, Name: r.given.Name}
	err := r.given.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: corev1.SecretTypeTLS,
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Secret %s: %w", key, err)
	}
	return secret, nil
}

func (r *rotation) write(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		return r.given.Client.Create(ctx, secret, client.FieldOwner(r.given.Operator))
	}
	return r.given.Client.Update(ctx, secret, client.FieldOwner(r.given.Operator))
}

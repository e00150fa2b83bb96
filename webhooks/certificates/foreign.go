package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// foreign is a certificate of which only the bundle is known.
type foreign struct{ path string }

// Foreign is where only the bundle comes from, as a file that is read again every minute: the certificate is that of
// somebody else, such as of a proxy before the server.
func Foreign(bundle string) (Source, error) {
	source := foreign{bundle}
	_, err := source.bundle()
	return source, err
}

// Run implements Source.
func (f foreign) Run(ctx context.Context, told func(bundle []byte)) error {
	var last []byte
	for ctx.Err() == nil {
		bundle, err := f.bundle()
		switch {
		case err != nil:
			logf.FromContext(ctx).Error(err, "Cannot read the CA bundle of webhooks; the former one stays")
		case !bytes.Equal(bundle, last):
			last = bundle
			told(bundle)
		}
		select {
		case <-ctx.Done():
		case <-time.After(bundleInterval):
		}
	}
	return nil
}

// GetCertificate implements Source.
func (f foreign) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("the certificate is somebody else's, and nothing but its CA is known")
}

func (f foreign) bundle() ([]byte, error) {
	bundle, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %w", err)
	}
	if len(bundle) == 0 {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %s is empty", f.path) // it may be written just now
	}
	return bundle, nil
}

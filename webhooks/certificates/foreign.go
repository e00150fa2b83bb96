package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"time"
)

// foreign is a certificate of which only the bundle is known.
type foreign struct {
	ready
	path string
}

// Foreign is where only the bundle comes from, as a file that is read again every minute: the certificate is that of
// somebody else, such as of a proxy before the server.
func Foreign(bundle string) (Source, error) {
	source := foreign{path: bundle}
	_, err := source.bundle()
	return source, err
}

// Run implements Source.
func (f foreign) Run(ctx context.Context, told func(bundle []byte)) error {
	known := announced{told: told}
	for ctx.Err() == nil {
		known.review(ctx, f.bundle)
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

func (f foreign) bundle() ([]byte, error) { return readBundle(f.path) }

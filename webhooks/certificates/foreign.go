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
	data []byte
}

// Foreign is where only the bundle comes from: a file that is read again every minute, or, without one, the data. The
// certificate belongs to another component, such as a proxy before the server. The bundle is the CERTIFICATE blocks
// alone; it is an error if there are none, or if one of them is not a certificate.
func Foreign(path string, data []byte) (Source, error) {
	source := foreign{path: path, data: data}
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
	return nil, errors.New("the certificate belongs to another server, and only its CA is configured")
}

func (f foreign) bundle() ([]byte, error) {
	if f.path != "" {
		return readBundle(f.path)
	}
	return ParseBundle(f.data)
}

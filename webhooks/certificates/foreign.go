package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"time"
)

// foreign is the source of a certificate that only its bundle describes. The bundle is the file at path, or else data.
type foreign struct {
	ready
	path string
	data []byte
}

// Foreign returns a source that only provides the bundle: from a file that is read again every minute or, without a
// path, from the data. The certificate belongs to another component, such as a proxy in front of the server. The bundle
// consists of the CERTIFICATE blocks only. It is an error if there are none, or if one of them is not a certificate.
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

// bundle returns the current CA bundle.
func (f foreign) bundle() ([]byte, error) {
	if f.path != "" {
		return readBundle(f.path)
	}
	return ParseBundle(f.data)
}

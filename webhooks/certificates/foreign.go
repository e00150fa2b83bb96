package certificates

import (
	"context"
	"crypto/tls"
	"errors"
)

// foreignBundle is the source of a certificate that only its bundle describes.
type foreignBundle struct {
	alwaysReady
	bundleSource
}

// ForeignSource returns a source that only provides the bundle: from a file that is read again every minute or, without
// a path, from the data. The certificate belongs to another component, such as a proxy in front of the server. The
// bundle consists of the CERTIFICATE blocks only. It is an error if there are none, or if one of them is not a
// certificate.
func ForeignSource(path string, data []byte) (Source, error) {
	source := foreignBundle{bundleSource: bundleSource{path, data}}
	_, err := source.currentBundle()
	return source, err
}

// Run implements Source.
func (f foreignBundle) Run(ctx context.Context, told func(bundle []byte)) error {
	return f.followBundle(ctx, told, nil, nil)
}

// GetCertificate implements Source.
func (f foreignBundle) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("the certificate belongs to another server, and only its CA is configured")
}

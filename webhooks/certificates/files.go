package certificates

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// bundleInterval is how often the file of the bundle is read, of which no watcher tells.
const bundleInterval = time.Minute

// Files are a certificate and its key in files, which are read again when they change, as those of a Secret do that is
// mounted: no connection is refused meanwhile. Kopf: certfile, pkeyfile, cafile, cadata.
type Files struct {
	// Certificate and Key are the files, in PEM.
	Certificate, Key string
	// CA is the file of the bundle; empty is none.
	CA string
	// Bundle is what the file is for, in PEM. With neither of them, the bundle is the certificate itself.
	Bundle []byte
}

// Open reads the files.
func (f Files) Open() (Source, error) {
	watcher, err := certwatcher.New(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", f.Certificate, f.Key, err)
	}
	if _, err := f.bundle(); err != nil {
		return nil, err
	}
	return &files{given: f, watcher: watcher}, nil
}

// files are the files that are open.
type files struct {
	ready
	given   Files
	watcher *certwatcher.CertWatcher
}

// GetCertificate implements Source.
func (f *files) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.watcher.GetCertificate(hello)
}

// Run implements Source.
func (f *files) Run(ctx context.Context, told func(bundle []byte)) error {
	changed, failed := make(chan struct{}, 1), make(chan error, 1)
	f.watcher.RegisterCallback(func(tls.Certificate) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	go func() { failed <- f.watcher.Start(ctx) }()
	known := announced{told: told}
	for ctx.Err() == nil {
		known.review(ctx, f.given.bundle)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(bundleInterval):
		case err := <-failed:
			if ctx.Err() == nil && err != nil {
				return fmt.Errorf("watching the certificate %s: %w", f.given.Certificate, err)
			}
			failed = nil
		}
	}
	return nil
}

// bundle is what clients must know.
func (f Files) bundle() ([]byte, error) {
	if len(f.Bundle) > 0 {
		return ParseBundle(f.Bundle)
	}
	path := f.CA
	if path == "" {
		path = f.Certificate
	}
	return readBundle(path)
}

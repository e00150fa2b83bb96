package certificates

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Files is a certificate with its key in files. They are reloaded when they change, as the files of a mounted Secret
// do. No connection is rejected meanwhile. Kopf: certfile, pkeyfile, cafile, cadata.
type Files struct {
	// Certificate and Key are the paths of the files, in PEM.
	Certificate, Key string
	// CA is the path of the CA bundle. Empty means that there is no such file.
	CA string
	// Bundle is the content of a CA bundle, in PEM. It has priority over CA. Without both, the bundle is the
	// certificate itself.
	Bundle []byte
}

// Open reads the files and returns their source.
func (f Files) Open() (Source, error) {
	watcher, err := certwatcher.New(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", f.Certificate, f.Key, err)
	}
	// A self-signed certificate is its own CA.
	bundle := bundleSource{path: cmp.Or(f.CA, f.Certificate)}
	if len(f.Bundle) > 0 {
		bundle = bundleSource{data: f.Bundle}
	}
	// An unusable bundle is an error of the set-up. Later, the former bundle would stay valid.
	if _, err := bundle.currentBundle(); err != nil {
		return nil, err
	}
	return &files{bundleSource: bundle, certificate: f.Certificate, watcher: watcher}, nil
}

// files is the source of opened files.
type files struct {
	alwaysReady
	bundleSource
	certificate string // its path
	watcher     *certwatcher.CertWatcher
}

// GetCertificate implements Source.
func (f *files) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.watcher.GetCertificate(hello)
}

// Run implements Source.
func (f *files) Run(ctx context.Context, told func(bundle []byte)) error {
	changed, failed := make(chan struct{}, 1), make(chan error, 1)
	// The callback must not block the watcher, and one pending signal is sufficient.
	f.watcher.RegisterCallback(func(tls.Certificate) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	go func() { failed <- f.watcher.Start(ctx) }()
	err := f.followBundle(ctx, told, changed, failed)
	// Without the watcher, a renewed certificate would never be used.
	if err != nil {
		return fmt.Errorf("watching the certificate %s: %w", f.certificate, err)
	}
	return nil
}

package certificates

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// bundleInterval is the time between two reads of the bundle's file. certwatcher only watches the certificate and the
// key.
const bundleInterval = time.Minute

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
	// An unusable bundle is an error of the set-up. Later, the former bundle would stay valid.
	if _, err := f.currentBundle(); err != nil {
		return nil, err
	}
	return &files{options: f, watcher: watcher}, nil
}

// files is the source of opened files.
type files struct {
	alwaysReady
	options Files
	watcher *certwatcher.CertWatcher
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
	// The bundle is reviewed at once, after each change of the certificate, and at intervals.
	known := reportedBundle{report: told}
	for ctx.Err() == nil {
		known.reportIfChanged(ctx, f.options.currentBundle)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(bundleInterval):
		case err := <-failed:
			// Without the watcher, a renewed certificate would never be used.
			if ctx.Err() == nil && err != nil {
				return fmt.Errorf("watching the certificate %s: %w", f.options.Certificate, err)
			}
			failed = nil // a nil channel blocks: the interval alone remains
		}
	}
	return nil
}

// currentBundle returns the current CA bundle.
func (f Files) currentBundle() ([]byte, error) {
	if len(f.Bundle) > 0 {
		return ParseBundle(f.Bundle)
	}
	// A self-signed certificate is its own CA.
	path := f.CA
	if path == "" {
		path = f.Certificate
	}
	return readBundle(path)
}

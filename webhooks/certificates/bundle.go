package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// bundleInterval is the time between two reads of the bundle's file. certwatcher only watches the certificate and the
// key.
const bundleInterval = time.Minute

// bundleSource is a CA bundle in PEM: the file at path or, without a path, the data.
type bundleSource struct {
	path string
	data []byte
}

// followBundle reports the bundle at once and whenever it has changed. It reads it again after each signal of changed,
// and at intervals. An error from failed ends it; nil on failed only means that there will be no more signals.
func (b bundleSource) followBundle(
	ctx context.Context, told func(bundle []byte), changed <-chan struct{}, failed <-chan error,
) error {
	var last []byte
	for ctx.Err() == nil {
		switch bundle, err := b.currentBundle(); {
		case err != nil:
			logf.FromContext(ctx).Error(err, "Cannot read the CA bundle of webhooks; the former one stays")
		case !bytes.Equal(bundle, last):
			last = bundle
			told(bundle)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(bundleInterval):
		case err := <-failed:
			if ctx.Err() == nil && err != nil {
				return err
			}
			failed = nil // a nil channel blocks: the interval alone remains
		}
	}
	return nil
}

// currentBundle returns the current CA bundle.
func (b bundleSource) currentBundle() ([]byte, error) {
	if b.path != "" {
		return readBundle(b.path)
	}
	return ParseBundle(b.data)
}

// readBundle reads a bundle from a file that another program writes. An empty file is an error: it may be half-written,
// and with an empty bundle, API servers would trust the CAs of their system.
func readBundle(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %w", err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %s is empty", path)
	}
	bundle, err := onlyCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %s: %w", path, err)
	}
	return bundle, nil
}

// ParseBundle returns the certificates of a CA bundle in PEM, without comments and other blocks, such as private keys.
// It returns an error if there are none, or if one of them is not a certificate.
func ParseBundle(data []byte) ([]byte, error) {
	bundle, err := onlyCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %w", err)
	}
	return bundle, nil
}

// onlyCertificates returns the certificates of a text in PEM, without comments and other blocks. Everyone who can read
// the webhook configurations sees the bundle, and the same file may contain a private key.
func onlyCertificates(data []byte) (bundle []byte, err error) {
	const kind = "CERTIFICATE"
	found := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != kind {
			continue
		}
		found++
		// The API server rejects a bundle that it cannot parse, so the error is found here.
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", found, err)
		}
		bundle = append(bundle, encodePEM(kind, block.Bytes)...)
	}
	switch {
	case bytes.Count(data, []byte("-----BEGIN "+kind+"-----")) > found:
		// pem.Decode skips malformed blocks without an error. Clients with a bundle that lacks a CA reject valid
		// servers.
		return nil, errors.New("one of its certificates is not PEM")
	case found == 0:
		return nil, errors.New("there is no certificate")
	default:
		return bundle, nil
	}
}

package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// reportedBundle is the CA bundle that was reported last.
type reportedBundle struct {
	lastBundle []byte
	report     func(bundle []byte)
}

// reportIfChanged reads the bundle and reports it if it has changed. After an error, the former bundle stays valid.
func (a *reportedBundle) reportIfChanged(ctx context.Context, read func() ([]byte, error)) {
	bundle, err := read()
	switch {
	case err != nil:
		logf.FromContext(ctx).Error(err, "Cannot read the CA bundle of webhooks; the former one stays")
	case !bytes.Equal(bundle, a.lastBundle):
		a.lastBundle = bundle
		a.report(bundle)
	}
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

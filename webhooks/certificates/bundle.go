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

// announced is the bundle that was told last.
type announced struct {
	last []byte
	told func(bundle []byte)
}

// review tells the bundle if it is another one by now. One that cannot be read leaves the former one in force.
func (a *announced) review(ctx context.Context, read func() ([]byte, error)) {
	bundle, err := read()
	switch {
	case err != nil:
		logf.FromContext(ctx).Error(err, "Cannot read the CA bundle of webhooks; the former one stays")
	case !bytes.Equal(bundle, a.last):
		a.last = bundle
		a.told(bundle)
	}
}

// readBundle reads a bundle that others write. An empty file may be written just now, and an empty bundle would have
// API servers trust the CAs of their system instead.
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
// It is an error if there are none, or if one of them is not a certificate.
func ParseBundle(data []byte) ([]byte, error) {
	bundle, err := onlyCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %w", err)
	}
	return bundle, nil
}

// onlyCertificates returns the certificates of a text in PEM, without its comments and other blocks: anyone who reads
// the webhook configurations sees the bundle, and a private key may be in the same file.
func onlyCertificates(data []byte) (bundle []byte, err error) {
	const kind = "CERTIFICATE"
	found := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != kind {
			continue
		}
		found++
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", found, err)
		}
		bundle = append(bundle, inPEM(kind, block.Bytes)...)
	}
	switch {
	case bytes.Count(data, []byte("-----BEGIN "+kind+"-----")) > found: // the decoder skips blocks that it cannot read
		return nil, errors.New("one of its certificates is not PEM")
	case found == 0:
		return nil, errors.New("there is no certificate")
	default:
		return bundle, nil
	}
}

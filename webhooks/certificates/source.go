package certificates

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
)

// Source provides a certificate and its CA bundle.
type Source interface {
	// Run keeps the certificate up to date until the context ends. It reports the bundle, in PEM, by which clients
	// verify the server: once before the certificate is available, and whenever the bundle changes. An error means that
	// there will never be a certificate.
	Run(ctx context.Context, told func(bundle []byte)) error
	// GetCertificate is used as tls.Config.GetCertificate. It returns an error while there is no certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Check is for readiness: it returns an error while clients would reject the certificate.
	Check() error
}

// alwaysReady is embedded in sources whose certificate is available from the start.
type alwaysReady struct{}

// Check implements Source.
func (alwaysReady) Check() error { return nil }

// DumpBundle writes a bundle to a file, for clients such as curl with --cacert. Readers of the file never see a half-written
// bundle. Kopf: cadump.
func DumpBundle(path string, bundle []byte) error {
	// The temporary file is in the same directory, because a rename is only atomic within a file system.
	file, err := os.CreateTemp(filepath.Dir(path), ".ca-*")
	if err != nil {
		return fmt.Errorf("dumping the CA bundle: %w", err)
	}
	_, err = file.Write(bundle)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error is more useful
		return fmt.Errorf("dumping the CA bundle to %s: %w", path, err)
	}
	return nil
}

package certificates

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
)

// Source is where a certificate comes from.
type Source interface {
	// Run keeps the certificate up to date until the context ends. It tells the bundle, in PEM, by which clients know
	// the server: before the certificate can be had, and whenever the bundle changes. An error says that there never
	// will be a certificate.
	Run(ctx context.Context, told func(bundle []byte)) error
	// GetCertificate is for tls.Config.GetCertificate. It is an error if there is none yet.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Check is for readiness: it returns an error while clients would refuse the certificate.
	Check() error
}

// ready is for sources whose certificate is there from the beginning.
type ready struct{}

// Check implements Source.
func (ready) Check() error { return nil }

// Dump writes a bundle to a file, for clients such as curl with --cacert. Who reads it meanwhile has the former one.
// Kopf: cadump.
func Dump(path string, bundle []byte) error {
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
		_ = os.Remove(file.Name()) // the first error says more
		return fmt.Errorf("dumping the CA bundle to %s: %w", path, err)
	}
	return nil
}

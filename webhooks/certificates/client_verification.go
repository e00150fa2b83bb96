package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// ClientVerification configures which clients a server accepts. Kopf: verify_cafile, verify_mode.
type ClientVerification struct {
	// File contains the CAs of clients, in PEM. Clients with a certificate of another CA are rejected. The file is read
	// for each connection, so a new file takes effect at once. While it cannot be read, all clients are rejected.
	File string
	// Required also rejects clients without a certificate.
	Required bool
}

// CheckFile returns an error if the file cannot be used.
func (c ClientVerification) CheckFile() error {
	_, err := c.readPool()
	return err
}

// ConfigureTLS configures a server to verify its clients. It is one of the TLSOpts of a webhook server.
func (c ClientVerification) ConfigureTLS(config *tls.Config) {
	// As in Kopf, a client without a certificate is accepted by default.
	config.ClientAuth = tls.VerifyClientCertIfGiven
	if c.Required {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	// The configuration is cloned for each connection, so it includes changes of later TLSOpts.
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.readPool()
		if err != nil {
			return nil, err
		}
		fresh := config.Clone()
		fresh.ClientCAs = pool
		fresh.SessionTicketsDisabled = true // a rejected client must not resume a former session
		return fresh, nil
	}
}

// readPool reads the CAs from the file.
func (c ClientVerification) readPool() (*x509.CertPool, error) {
	data, err := os.ReadFile(c.File)
	if err != nil {
		return nil, fmt.Errorf("reading the CAs of clients: %w", err)
	}
	// An empty pool would reject all clients, so a file without certificates is an error.
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the CAs of clients: there is no certificate in %s", c.File)
	}
	return pool, nil
}

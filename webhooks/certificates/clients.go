package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Clients say which clients a server serves. Kopf: verify_cafile, verify_mode.
type Clients struct {
	// File has CAs, in PEM. Certificates that none of them has signed are refused. It is read for each connection, so
	// that a new one counts at once; while it cannot be read, nobody is served.
	File string
	// Required refuses clients without a certificate, too.
	Required bool
}

// Check tells whether the file can be used.
func (c Clients) Check() error {
	_, err := c.pool()
	return err
}

// Apply sets up what a server asks of its clients. It is for the TLSOpts of a webhook server.
func (c Clients) Apply(config *tls.Config) {
	config.ClientAuth = tls.VerifyClientCertIfGiven
	if c.Required {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.pool()
		if err != nil {
			return nil, err
		}
		fresh := config.Clone()
		fresh.ClientCAs = pool
		fresh.SessionTicketsDisabled = true // a client that is known no more must not come back by its ticket
		return fresh, nil
	}
}

func (c Clients) pool() (*x509.CertPool, error) {
	data, err := os.ReadFile(c.File)
	if err != nil {
		return nil, fmt.Errorf("reading the CAs of clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the CAs of clients: there is no certificate in %s", c.File)
	}
	return pool, nil
}

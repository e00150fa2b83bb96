package credentials

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Info is the result of one login. Package facade has the same fields and documents them. Kopf: ConnectionInfo.
type Info struct {
	Server           string
	CAPath           string
	CAData           []byte
	Insecure         bool
	Username         string
	Password         string
	Scheme           string
	Token            string
	CertificatePath  string
	CertificateData  []byte
	PrivateKeyPath   string
	PrivateKeyData   []byte
	DefaultNamespace string
	ProxyURL         string
	TrustEnv         bool
	Priority         int
	Expiration       time.Time
	Config           *rest.Config
}

// hasExpired reports whether the credentials have expired. A zero expiration means never.
func (i *Info) hasExpired() bool { return !i.Expiration.IsZero() && !time.Now().Before(i.Expiration) }

// contentDigest returns a digest that is equal for equal credentials. Files count by their content, because they can be
// renewed under the same name. It detects a login handler that returns invalidated credentials again.
func (i *Info) contentDigest() [sha256.Size]byte {
	own := *i
	// The configuration has fields that cannot be encoded, and Round removes the monotonic clock.
	own.Config, own.Expiration = nil, i.Expiration.Round(0)
	parts := []any{own, fileContent(i.CertificatePath), fileContent(i.PrivateKeyPath), fileContent(i.CAPath)}
	// Only the fields that identify the server and the user count.
	if c := i.Config; c != nil {
		parts = append(parts, c.Host, c.Username, c.Password, c.BearerToken, fileContent(c.BearerTokenFile),
			c.Impersonate,
			c.CertData, c.KeyData, fileContent(c.CertFile), fileContent(c.KeyFile), c.CAData, fileContent(c.CAFile))
		// A plugin counts by its command: the same command can return new credentials, which client-go handles on its
		// own.
		if c.ExecProvider != nil {
			exec := *c.ExecProvider
			// It describes the cluster, not the user.
			exec.Config = nil
			parts = append(parts, exec)
		}
		if c.AuthProvider != nil {
			parts = append(parts, *c.AuthProvider)
		}
	}
	data, err := json.Marshal(parts)
	if err != nil {
		// An imperfect digest is acceptable: at worst, equal credentials are not recognized.
		data = fmt.Append(nil, parts...)
	}
	return sha256.Sum256(data)
}

// fileContent returns the content of a file. It returns nil for files that cannot be read: the user of the file reports
// the error.
func fileContent(path string) []byte {
	data, err := os.ReadFile(path) //nolint:gosec // it is the user's own
	if err != nil {
		return nil
	}
	return data
}

// toConfig returns the client-go configuration for the credentials. The fields take precedence over Config.
func (i *Info) toConfig() (*rest.Config, error) {
	if err := i.checkFields(); err != nil {
		return nil, err
	}
	c := &rest.Config{}
	if i.Config != nil {
		// The configuration belongs to the login handler and must not be modified.
		c = rest.CopyConfig(i.Config)
	}
	c.Host = cmp.Or(i.Server, c.Host)
	i.setTrust(c)
	// Without a user in the fields, that of the configuration is kept.
	if i.identifiesUser() {
		i.setUser(c)
	}
	if err := i.setProxy(c); err != nil {
		return nil, err
	}
	// Client-go would silently connect to localhost.
	if c.Host == "" {
		return nil, errors.New("field Server: it is missing")
	}
	return c, nil
}

package credentials

import (
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

// expired reports whether the credentials have expired. A zero expiration means never.
func (i *Info) expired() bool { return !i.Expiration.IsZero() && !time.Now().Before(i.Expiration) }

// identity returns a digest that is equal for equal credentials. Files count by their content, because they can be
// renewed under the same name. It detects a login handler that returns invalidated credentials again.
func (i *Info) identity() [sha256.Size]byte {
	own := *i
	// The configuration has fields that cannot be encoded, and Round removes the monotonic clock.
	own.Config, own.Expiration = nil, i.Expiration.Round(0)
	parts := []any{own, content(i.CertificatePath), content(i.PrivateKeyPath), content(i.CAPath)}
	// Only the fields that identify the server and the user count.
	if c := i.Config; c != nil {
		parts = append(parts, c.Host, c.Username, c.Password, c.BearerToken, content(c.BearerTokenFile), c.Impersonate,
			c.CertData, c.KeyData, content(c.CertFile), content(c.KeyFile), c.CAData, content(c.CAFile))
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

// content returns the content of a file. It returns nil for files that cannot be read: the user of the file reports the
// error.
func content(path string) []byte {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path) //nolint:gosec // it is the user's own
	if err != nil {
		return nil
	}
	return data
}

// configuration returns the client-go configuration for the credentials. The fields take precedence over Config.
func (i *Info) configuration() (*rest.Config, error) {
	if err := i.check(); err != nil {
		return nil, err
	}
	c := &rest.Config{}
	if i.Config != nil {
		// The configuration belongs to the login handler and must not be modified.
		c = rest.CopyConfig(i.Config)
	}
	override(&c.Host, i.Server)
	i.trust(c)
	// Without a user in the fields, that of the configuration is kept.
	if i.identifies() {
		i.identify(c)
	}
	if err := i.proxies(c); err != nil {
		return nil, err
	}
	// Client-go would silently connect to localhost.
	if c.Host == "" {
		return nil, errors.New("field Server: it is missing")
	}
	return c, nil
}

// override sets a field unless the value is empty.
func override(field *string, value string) {
	if value != "" {
		*field = value
	}
}

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

// Info is what one login gives. Package facade has the same fields, with their meaning. Kopf: ConnectionInfo.
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

// expired tells whether the time of the credentials is over. Zero is never.
func (i *Info) expired() bool { return !i.Expiration.IsZero() && !time.Now().Before(i.Expiration) }

// identity is the same for the same credentials. Those in files are what the files have: they may be renewed.
func (i *Info) identity() [sha256.Size]byte {
	own := *i
	own.Config, own.Expiration = nil, i.Expiration.Round(0)
	parts := []any{own, content(i.CertificatePath), content(i.PrivateKeyPath), content(i.CAPath)}
	if c := i.Config; c != nil {
		parts = append(parts, c.Host, c.Username, c.Password, c.BearerToken, content(c.BearerTokenFile), c.Impersonate,
			c.CertData, c.KeyData, content(c.CertFile), content(c.KeyFile), c.CAData, content(c.CAFile))
		if c.ExecProvider != nil {
			exec := *c.ExecProvider
			exec.Config = nil
			parts = append(parts, exec)
		}
		if c.AuthProvider != nil {
			parts = append(parts, *c.AuthProvider)
		}
	}
	data, err := json.Marshal(parts)
	if err != nil {
		data = fmt.Append(nil, parts...)
	}
	return sha256.Sum256(data)
}

// content is nil for files that cannot be read: who needs them reports it.
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

// configuration is what client-go makes of the credentials. The fields win over the configuration among them.
func (i *Info) configuration() (*rest.Config, error) {
	if err := i.check(); err != nil {
		return nil, err
	}
	c := &rest.Config{}
	if i.Config != nil {
		c = rest.CopyConfig(i.Config)
	}
	override(&c.Host, i.Server)
	i.trust(c)
	if i.identifies() {
		i.identify(c)
	}
	if err := i.proxies(c); err != nil {
		return nil, err
	}
	if c.Host == "" {
		return nil, errors.New("field Server: it is missing")
	}
	return c, nil
}

func override(field *string, value string) {
	if value != "" {
		*field = value
	}
}

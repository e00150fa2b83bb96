package credentials

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// checkFields returns all errors in the credentials. Without it, some of them would look like connection errors later.
func (i *Info) checkFields() error {
	return errors.Join(
		i.checkServer(),
		checkExclusive("CAPath", i.CAPath != "", "CAData", len(i.CAData) > 0),
		checkExclusive("CAPath or CAData", i.CAPath != "" || len(i.CAData) > 0, "Insecure", i.Insecure),
		checkExclusive("CertificatePath", i.CertificatePath != "", "CertificateData", len(i.CertificateData) > 0),
		checkExclusive("PrivateKeyPath", i.PrivateKeyPath != "", "PrivateKeyData", len(i.PrivateKeyData) > 0),
		checkExclusive("Username", i.Username != "", "Token", i.Token != ""),
		checkPEM("CAData", i.CAData), i.checkPair(),
		checkHeader("Token", i.Token), checkHeader("Scheme", i.Scheme),
	)
}

// checkServer accepts an empty address.
func (i *Info) checkServer() error {
	if i.Server == "" {
		return nil // the configuration can supply it
	}
	server, err := url.Parse(i.Server)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return fmt.Errorf("field Server: %q is not a URL of an API server, such as https://host:6443", i.Server)
	}
	return nil
}

// checkExclusive returns an error if both fields are set.
func checkExclusive(one string, set bool, other string, also bool) error {
	if set && also {
		return fmt.Errorf("%s and %s exclude each other", one, other)
	}
	return nil
}

// checkPEM returns an error if the data is not PEM. A frequent mistake is to pass the base64 text of a kubeconfig.
func checkPEM(field string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if block, _ := pem.Decode(data); block == nil {
		return fmt.Errorf("%s: it is not PEM; a kubeconfig has it in base64, which is to be decoded", field)
	}
	return nil
}

// checkPair checks the client certificate and its private key against each other.
func (i *Info) checkPair() error {
	certified, keyed := i.CertificatePath != "" || len(i.CertificateData) > 0,
		i.PrivateKeyPath != "" || len(i.PrivateKeyData) > 0
	switch {
	// A certificate without its key cannot be used, nor a key without its certificate.
	case certified != keyed:
		return errors.New("a certificate needs its private key, and vice versa: one of them is missing")
	case len(i.CertificateData) == 0 || len(i.PrivateKeyData) == 0:
		return nil // client-go reads files later
	}
	err := errors.Join(checkPEM("CertificateData", i.CertificateData), checkPEM("PrivateKeyData", i.PrivateKeyData))
	if err != nil {
		return err
	}
	// A key of another certificate would otherwise fail only with the first request.
	if _, err := tls.X509KeyPair(i.CertificateData, i.PrivateKeyData); err != nil {
		return fmt.Errorf("CertificateData and PrivateKeyData: %w", err)
	}
	return nil
}

// checkHeader returns an error for characters that HTTP headers cannot contain, such as the newline at the end of a
// token file. The error does not contain the value, which is secret.
func checkHeader(field, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s: it has white space or other characters that no header can have: trim it", field)
	}
	return nil
}

// setTrust sets how the API server is verified. A setting here replaces all of the configuration's settings, since
// client-go rejects a mixture.
func (i *Info) setTrust(c *rest.Config) {
	switch {
	case i.Insecure:
		c.Insecure, c.CAFile, c.CAData = true, "", nil
	case i.CAPath != "" || len(i.CAData) > 0:
		c.Insecure, c.CAFile, c.CAData = false, i.CAPath, i.CAData
	}
}

// identifiesUser reports whether the fields identify the user.
func (i *Info) identifiesUser() bool {
	return i.Username != "" || i.Token != "" || i.Scheme != "" || i.CertificatePath != "" || len(i.CertificateData) > 0
}

// setUser sets the user from the fields alone: all credentials of the configuration are removed, as they would compete
// with the fields.
func (i *Info) setUser(c *rest.Config) {
	c.ExecProvider, c.AuthProvider, c.BearerToken, c.BearerTokenFile = nil, nil, "", ""
	// A certificate can be combined with a token or a password.
	c.Username, c.Password = i.Username, i.Password
	c.CertFile, c.CertData = i.CertificatePath, i.CertificateData
	c.KeyFile, c.KeyData = i.PrivateKeyPath, i.PrivateKeyData
	// Client-go supports bearer tokens itself.
	if i.Scheme == "" || strings.EqualFold(i.Scheme, "Bearer") && i.Token != "" {
		c.BearerToken = i.Token
		return
	}
	// Other schemes need a header that client-go does not set.
	value := strings.TrimSpace(i.Scheme + " " + i.Token)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return authorizationTransport{value, next} })
}

// authorizationTransport adds an Authorization header with a scheme that client-go does not support.
type authorizationTransport struct {
	value string
	next  http.RoundTripper
}

// RoundTrip sends the request with the header. A header that the request already has is kept.
func (a authorizationTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		// A round tripper must not modify the request.
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", a.value)
	}
	return a.next.RoundTrip(r)
}

// setProxy sets the proxy. An explicit URL takes precedence over the environment.
func (i *Info) setProxy(c *rest.Config) error {
	switch {
	case i.ProxyURL != "":
		proxy, err := url.Parse(i.ProxyURL)
		if err != nil || proxy.Host == "" {
			return fmt.Errorf("ProxyURL: %q is not a URL of a proxy, such as http://host:3128", i.ProxyURL)
		}
		c.Proxy = http.ProxyURL(proxy)
	// A proxy of the configuration takes precedence over the environment.
	case i.TrustEnv && c.Proxy == nil:
		c.Proxy = http.ProxyFromEnvironment
	}
	return nil
}

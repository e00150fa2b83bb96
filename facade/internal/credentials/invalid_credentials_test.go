package credentials_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

func TestGarbage(t *testing.T) {
	const api = "https://api:6443"
	tests := map[string]struct {
		reason string
		info   *credentials.Info
		want   string
	}{
		"Nothing": {"nil credentials are an error", nil, "no credentials were given"},
		"Empty":   {"credentials without a server are an error", &credentials.Info{}, "field Server: it is missing"},
		"NoURL": {
			"a server without a scheme is an error", &credentials.Info{Server: "api:6443"},
			"field Server: \"api:6443\" is not a URL",
		},
		"NewLine": {
			"a token with a line break is an error",
			&credentials.Info{Server: api, Token: "secret\n"}, "Token: it has white space",
		},
		"Base64": { // D-login-pem
			"a CA that is not PEM is an error, unlike in Kopf",
			&credentials.Info{Server: api, CAData: []byte("LS0t")}, "CAData: it is not PEM",
		},
		"TwoCAs": {
			"a CA as a path and as data is an error",
			&credentials.Info{Server: api, CAPath: "a", CAData: []byte("b")}, "exclude each other",
		},
		"Trusting": {"a CA with an insecure connection is an error",
			&credentials.Info{Server: api, CAPath: "a", Insecure: true}, "exclude each other"},
		"TwoUsers": {"a name with a token is an error",
			&credentials.Info{Server: api, Username: "a", Token: "b"}, "exclude each other"},
		"NoKey": {"a certificate without its key is an error",
			&credentials.Info{Server: api, CertificatePath: "a"}, "its private key"},
		"NoFile": {"the error of a missing CA file names it",
			&credentials.Info{Server: api, CAPath: "/nowhere/ca"}, "/nowhere/ca"},
		"NoKeyFile": {
			"the error of a missing certificate file names it",
			&credentials.Info{Server: api, CertificatePath: "/a", PrivateKeyPath: "/b"}, "/a",
		},
		"BadPair": {"the error of a broken certificate names the field", &credentials.Info{
			Server: api, CertificateData: []byte("a"), PrivateKeyData: []byte("b"),
		}, "CertificateData: it is not PEM"},
		"BadProxy": {
			"the error of a broken proxy names the field",
			&credentials.Info{Server: api, ProxyURL: "proxy"}, "ProxyURL: \"proxy\" is no",
		},
		"BadConfig": {"an error of client-go is passed on", &credentials.Info{
			Config: &rest.Config{Host: api, Username: "a", BearerToken: "b"},
		}, "bearer token may be set"},
		"Expired": {"expired credentials are an error", &credentials.Info{
			Server: api, Token: "a", Expiration: time.Now().Add(-time.Hour),
		}, "the credentials have expired at "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := start(t.Context(), t, func(int) (map[string]*credentials.Info, error) {
				return map[string]*credentials.Info{"fn": tc.info}, nil
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `handler "fn"`) {
				t.Errorf("%s: want %q, got: %v", tc.reason, tc.want, err)
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
	t.Run("NoHandlers", func(t *testing.T) {
		_, err := start(t.Context(), t, func(int) (map[string]*credentials.Info, error) { return nil, nil })
		if err == nil || !strings.Contains(err.Error(), "no credentials were given") {
			t.Errorf("a login without handlers must be an error, got: %v", err)
		}
	})
}

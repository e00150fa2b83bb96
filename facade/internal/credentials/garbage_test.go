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
		"Nothing": {"nobody has credentials", nil, "no credentials were given"},
		"Empty":   {"there is nothing to connect to", &credentials.Info{}, "field Server: it is missing"},
		"NoURL": {
			"a host alone is ambiguous", &credentials.Info{Server: "api:6443"},
			"field Server: \"api:6443\" is not a URL",
		},
		"NewLine": {
			"files end with one", &credentials.Info{Server: api, Token: "secret\n"}, "Token: it has white space",
		},
		"Base64": { // D-login-pem
			"Kopf takes it", &credentials.Info{Server: api, CAData: []byte("LS0t")}, "CAData: it is not PEM",
		},
		"TwoCAs": {
			"which one", &credentials.Info{Server: api, CAPath: "a", CAData: []byte("b")}, "exclude each other",
		},
		"Trusting": {"which one", &credentials.Info{Server: api, CAPath: "a", Insecure: true}, "exclude each other"},
		"TwoUsers": {"which one", &credentials.Info{Server: api, Username: "a", Token: "b"}, "exclude each other"},
		"NoKey":    {"it proves nothing", &credentials.Info{Server: api, CertificatePath: "a"}, "its private key"},
		"NoFile":   {"the file is named", &credentials.Info{Server: api, CAPath: "/nowhere/ca"}, "/nowhere/ca"},
		"NoKeyFile": {
			"the file is named", &credentials.Info{Server: api, CertificatePath: "/a", PrivateKeyPath: "/b"}, "/a",
		},
		"BadPair": {"the field is named", &credentials.Info{
			Server: api, CertificateData: []byte("a"), PrivateKeyData: []byte("b"),
		}, "CertificateData: it is not PEM"},
		"BadProxy": {
			"the field is named", &credentials.Info{Server: api, ProxyURL: "proxy"}, "ProxyURL: \"proxy\" is no",
		},
		"BadConfig": {"client-go says what is wrong", &credentials.Info{
			Config: &rest.Config{Host: api, Username: "a", BearerToken: "b"},
		}, "bearer token may be set"},
		"Expired": {"it would be dropped at once", &credentials.Info{
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
				t.Errorf("the secret is told: %v", err)
			}
		})
	}
	t.Run("NoHandlers", func(t *testing.T) {
		_, err := start(t.Context(), t, func(int) (map[string]*credentials.Info, error) { return nil, nil })
		if err == nil || !strings.Contains(err.Error(), "no credentials were given") {
			t.Errorf("nobody has given any, got: %v", err)
		}
	})
}

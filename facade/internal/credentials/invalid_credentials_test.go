package credentials_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

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
		"Space": {
			"a token with a space is an error, as it would be two parts of the header",
			&credentials.Info{Server: api, Token: "the secret"}, "Token: it has white space",
		},
		"NoASCII": {
			"a token with a character outside of ASCII is an error",
			&credentials.Info{Server: api, Token: "secret\u00e4"}, "Token: it has white space or other characters",
		},
		"Scheme": {
			"a scheme with a space is an error",
			&credentials.Info{Server: api, Scheme: "Basic ", Token: "secret"}, "Scheme: it has white space",
		},
		"NoCertificate": {"a key without its certificate is an error",
			&credentials.Info{Server: api, PrivateKeyPath: "a"}, "its private key"},
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

// TestIgnoredCredentials shows that the log names invalid credentials beside valid ones, unless a handler returns none.
func TestIgnoredCredentials(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	_, err := start(logf.IntoContext(t.Context(), log), t, func(int) (map[string]*credentials.Info, error) {
		valid := &credentials.Info{Server: "https://api:6443", Token: "a"}
		return map[string]*credentials.Info{"valid": valid, "none": nil, "bad": {Server: "api"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "Ignored credentials") || !strings.Contains(lines[0], "bad") {
		t.Errorf("want one line about the handler %q, got %q", "bad", lines)
	}
}

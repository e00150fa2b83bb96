package devcluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// adminName is the user name in the kubeconfig.
const adminName = "devcluster-admin"

// authenticateRequest authenticates a request. It refuses requests that a web page in the user's browser could send:
// those without the token, and those with a host name that merely resolves to this machine (DNS rebinding).
func (h *handler) authenticateRequest(r *http.Request) (user string, err error) {
	// A Host header without a port is refused; clients omit the port only if it is 443.
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || port != h.port || !isLoopback(host) {
		return "", apierrors.NewForbidden(schema.GroupResource{}, "", errForeignHost)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	user, ok := h.tokens.userOf(strings.TrimSpace(token))
	if !strings.EqualFold(scheme, "Bearer") || !ok {
		return "", apierrors.NewUnauthorized("the request needs the token of the kubeconfig file")
	}
	return user, nil
}

// isLoopback reports whether the host name always refers to this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tokens issues and verifies bearer tokens. Each token gives all permissions.
type tokens struct {
	key        []byte
	adminToken string
}

// newTokens creates a signing key, and the token of the kubeconfig. Tokens become invalid when the cluster ends.
func newTokens() *tokens {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // does not fail
	t := &tokens{key: key}
	// The token is valid as long as the certificates.
	t.adminToken = t.issueToken(adminName, nil, time.Now().Add(certificateLifetime))
	return t
}

// claims is the content of a token. Tokens are JSON Web Tokens because some clients decode them.
type claims struct {
	Subject  string   `json:"sub"`
	Issuer   string   `json:"iss"`
	Audience []string `json:"aud,omitempty"`
	IssuedAt int64    `json:"iat"`
	Expires  int64    `json:"exp"`
}

// issueToken returns a signed token for a user.
func (t *tokens) issueToken(user string, audiences []string, expires time.Time) string {
	data, _ := json.Marshal(claims{user, clusterName, audiences, time.Now().Unix(), expires.Unix()})
	// The header is constant: the algorithm of a token is never read from the token itself.
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(data)
	return signed + "." + base64.RawURLEncoding.EncodeToString(t.signText(signed))
}

// signText returns the HMAC of the signed part of a token.
func (t *tokens) signText(text string) []byte {
	sum := hmac.New(sha256.New, t.key)
	_, _ = sum.Write([]byte(text))
	return sum.Sum(nil)
}

// userOf returns the user of a token. It reports false if the signature is wrong or the token has expired.
func (t *tokens) userOf(token string) (string, bool) {
	// A token has three parts; the signature covers the first two.
	at := strings.LastIndexByte(token, '.')
	if at < 0 {
		return "", false
	}
	given, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	// Compare in constant time, so that a signature cannot be guessed byte by byte.
	if err != nil || !hmac.Equal(given, t.signText(token[:at])) {
		return "", false
	}
	// The claims are only decoded after the signature has been verified.
	_, body, _ := strings.Cut(token[:at], ".")
	data, err := base64.RawURLEncoding.DecodeString(body)
	var c claims
	if err != nil || json.Unmarshal(data, &c) != nil || time.Now().Unix() > c.Expires {
		return "", false
	}
	return c.Subject, true
}

// groupsOf returns the groups that the real server assigns to a user.
func groupsOf(user string) []string {
	groups := []string{"system:authenticated"}
	if user == adminName {
		groups = append(groups, "system:masters")
	}
	// The name of a service account contains its namespace: system:serviceaccount:NAMESPACE:NAME.
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	slices.Sort(groups)
	return groups
}

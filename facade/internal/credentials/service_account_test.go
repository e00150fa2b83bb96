package credentials_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// mounted returns the configuration that client-go reads in a pod with this token.
func (c *cluster) mounted(token string) func() (*rest.Config, error) {
	return func() (*rest.Config, error) {
		return &rest.Config{
			Host: c.server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: c.file("ca", c.ca)},
			BearerToken: token, BearerTokenFile: c.folder + "/token",
		}, nil
	}
}

func TestServiceAccount(t *testing.T) {
	c := newCluster(t, "Bearer mounted")
	c.file("token", []byte("mounted"))
	namespace := c.file("namespace", []byte("operators\n"))
	p, err := connect(t, func() (*credentials.Info, error) {
		return credentials.ServiceAccountOf(c.mounted("mounted"), namespace)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.user(t); got != "Bearer mounted" || err != nil {
		t.Errorf("want the mounted token, got %q, error %v", got, err)
	}
	c.file("token", []byte("renewed"))
	c.setUsers("Bearer renewed")
	if got, err := p.user(t); got != "Bearer renewed" || err != nil || p.logins != 2 {
		t.Errorf("a renewed token must be read: got %q after %d logins, error %v", got, p.logins, err)
	}
	info, err := credentials.ServiceAccountOf(c.mounted("renewed"), namespace)
	// D-login-server: the address is that of client-go in the environment.
	if err != nil || info.Server != c.server.URL || info.Token != "" || info.Priority != 20 ||
		info.DefaultNamespace != "operators" {
		t.Errorf("want the credentials of the pod, got %+v, error %v", info, err)
	}
}

func TestPodsWithoutServiceAccount(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Elsewhere": {"outside of a pod, there are no credentials and no error", rest.ErrNotInCluster, ""},
		"NotMounted": {
			"a pod without a mounted token has no credentials and no error",
			&fs.PathError{Op: "open", Path: "token", Err: fs.ErrNotExist}, "",
		},
		"Unreadable": {"an unreadable token is an error", &fs.PathError{
			Op: "open", Path: "/var/run/token", Err: fs.ErrPermission,
		}, "reading the service account: open /var/run/token"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info, err := credentials.ServiceAccountOf(func() (*rest.Config, error) { return nil, tc.err }, "")
			if info != nil || tc.want == "" && err != nil || tc.want != "" &&
				(err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %+v, error %v", tc.reason, tc.want, info, err)
			}
		})
	}
}

// TestDefaultNamespaces shows that the built-in login takes the default namespace of the context, and no other.
func TestDefaultNamespaces(t *testing.T) {
	withoutCluster(t)
	const form = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: %s}], " +
		`clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]}`
	for name, tc := range map[string]struct{ reason, context, want string }{
		"Said":    {"the namespace of the context is the default", "{cluster: a, namespace: ours}", "ours"},
		"Default": {"an explicit namespace \"default\" is kept", "{cluster: a, namespace: default}", "default"},
		"None":    {"a context without a namespace does not have a default", "{cluster: a}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/config"
			if err := os.WriteFile(path, fmt.Appendf(nil, form, tc.context), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("POD_NAMESPACE", "another") // is the namespace of the process, not of the cluster
			info, err := credentials.Login(path, "")
			if err != nil || info.DefaultNamespace != tc.want {
				t.Errorf("%s: want %q, got %+v, error %v", tc.reason, tc.want, info, err)
			}
		})
	}
}

// TestContextBesideAMissingCurrentOne shows that a requested context works even if the current one does not exist.
func TestContextBesideAMissingCurrentOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: gone, " +
		"contexts: [{name: good, context: {cluster: c, user: u}}], " +
		"clusters: [{name: c, cluster: {server: 'https://localhost:1'}}], users: [{name: u, user: {token: t}}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := credentials.FromKubeconfig(path, "good")
	if err != nil || info.Token != "t" {
		t.Errorf("want the credentials of the context, got %+v, error %v", info, err)
	}
}

// TestAuthorityOfKubeconfig shows that the certificate authority is kept as the kubeconfig has it: a path or a content.
// The credentials cannot have both.
func TestAuthorityOfKubeconfig(t *testing.T) {
	folder := t.TempDir()
	authority, path := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "config")
	if err := os.WriteFile(authority, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ reason, cluster, path, data string }{
		"Path": {
			"a path is kept, because the file can change", "certificate-authority: " + authority, authority, "",
		},
		"Content": {"a content is kept without a path", "certificate-authority-data: dGV4dA==", "", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "{apiVersion: v1, kind: Config, current-context: a, " +
				"contexts: [{name: a, context: {cluster: c}}], " +
				"clusters: [{name: c, cluster: {server: 'https://localhost:1', " + tc.cluster + "}}]}"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := credentials.FromKubeconfig(path, "")
			if err != nil || info.CAPath != tc.path || string(info.CAData) != tc.data {
				t.Errorf("%s: got %+v, error %v", tc.reason, info, err)
			}
		})
	}
}

package connection_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// mounted is what client-go reads in a pod with this token.
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
		return connection.ServiceAccountOf(c.mounted("mounted"), namespace)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.user(t); got != "Bearer mounted" || err != nil {
		t.Errorf("got %q, error %v", got, err)
	}
	c.file("token", []byte("renewed"))
	c.welcome("Bearer renewed")
	if got, err := p.user(t); got != "Bearer renewed" || err != nil || p.logins != 2 {
		t.Errorf("the kubelet renews it: got %q after %d logins, error %v", got, p.logins, err)
	}
	info, err := connection.ServiceAccountOf(c.mounted("renewed"), namespace)
	// D-login-server: it is what client-go finds in the environment.
	if err != nil || info.Server != c.server.URL || info.Token != "" || info.Priority != 20 ||
		info.DefaultNamespace != "operators" {
		t.Errorf("got %+v, error %v", info, err)
	}
}

func TestPodsWithoutServiceAccount(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Elsewhere": {"it is no pod", rest.ErrNotInCluster, ""},
		"NotMounted": {
			"a pod may have another way to log in", &fs.PathError{Op: "open", Path: "token", Err: fs.ErrNotExist}, "",
		},
		"Unreadable": {"somebody has to look after it", &fs.PathError{
			Op: "open", Path: "/var/run/token", Err: fs.ErrPermission,
		}, "reading the service account: open /var/run/token"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info, err := connection.ServiceAccountOf(func() (*rest.Config, error) { return nil, tc.err }, "")
			if info != nil || tc.want == "" && err != nil || tc.want != "" &&
				(err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %+v, error %v", tc.reason, tc.want, info, err)
			}
		})
	}
}

// The built-in login has the namespace of what it takes, and no other.
func TestDefaultNamespaces(t *testing.T) {
	withoutCluster(t)
	const form = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: %s}], " +
		`clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]}`
	for name, tc := range map[string]struct{ reason, context, want string }{
		"Said":    {"as kubectl takes it", "{cluster: a, namespace: ours}", "ours"},
		"Default": {"it may be said", "{cluster: a, namespace: default}", "default"},
		"None":    {"it is for those who need one", "{cluster: a}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/config"
			if err := os.WriteFile(path, fmt.Appendf(nil, form, tc.context), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("POD_NAMESPACE", "another") // is that of the process, not of the cluster
			info, err := connection.Login(path, "")
			if err != nil || info.DefaultNamespace != tc.want {
				t.Errorf("%s: want %q, got %+v, error %v", tc.reason, tc.want, info, err)
			}
		})
	}
}

// A context that is asked for counts, whatever the file has as its current one.
func TestContextBesideAMissingCurrentOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: gone, " +
		"contexts: [{name: good, context: {cluster: c, user: u}}], " +
		"clusters: [{name: c, cluster: {server: 'https://localhost:1'}}], users: [{name: u, user: {token: t}}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := connection.Kubeconfig(path, "good")
	if err != nil || info.Token != "t" {
		t.Errorf("want the credentials of the context, got %+v, error %v", info, err)
	}
}

package credentials_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// kubeconfig writes a kubeconfig with the user "me" for the cluster and returns its path. more is added to the
// cluster.
func (c *cluster) kubeconfig(user, more string) string {
	c.t.Helper()
	return c.file("config", fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: here,
		contexts: [{name: there, context: {cluster: there, user: other, namespace: theirs}},
			{name: here, context: {cluster: here, user: me, namespace: ours}}],
		clusters: [{name: there, cluster: {server: "https://127.0.0.1:1"}},
			{name: here, cluster: {server: %q, certificate-authority-data: %s%s}}],
		users: [{name: other, user: {token: other}}, {name: me, user: {%s}}]}`,
		c.server.URL, encoded(c.ca), more, user))
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// TestUsersOfKubeconfigs shows that each kind of credentials in a kubeconfig logs in as the right user, with login
// handlers and with the built-in login.
func TestUsersOfKubeconfigs(t *testing.T) {
	basic := "Basic " + encoded([]byte("ann:secret"))
	c := newCluster(t, "Bearer a", "Bearer in a file", basic, "ann", "Bearer of a plugin")
	certificate, key := c.certificate("ann")
	cases := map[string]struct{ reason, user, want string }{
		"Token": {"a token logs in", `token: a`, "Bearer a"},
		"TokenFile": {"a file with a token logs in",
			`tokenFile: ` + c.file("token", []byte("in a file\n")), "Bearer in a file"},
		"Basic": {"a name and password log in", `username: ann, password: secret`, basic},
		"Certificate": {"a client certificate logs in", fmt.Sprintf(
			"client-certificate-data: %s, client-key-data: %s", encoded(certificate), encoded(key),
		), "ann"},
		"CertificateFiles": {"files with a client certificate log in", fmt.Sprintf(
			"client-certificate: %s, client-key: %s", c.file("crt", certificate), c.file("key", key),
		), "ann"},
		"Plugin": {"a credential plugin logs in", c.plugin("of a plugin"), "Bearer of a plugin"},
	}
	for name, tc := range cases {
		for how, login := range map[string]func(string, string) (*credentials.Info, error){
			"Handler": credentials.FromKubeconfig, "BuiltIn": credentials.Login,
		} {
			t.Run(name+how, func(t *testing.T) {
				path := c.kubeconfig(tc.user, "")
				p, err := connect(t, func() (*credentials.Info, error) { return login(path, "") })
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if got, err := p.user(t); got != tc.want || err != nil {
					t.Errorf("%s: want %q, got %q, error %v", tc.reason, tc.want, got, err)
				}
				if got := p.streamingUser(t); got != tc.want {
					t.Errorf("%s: streams must use the same credentials: want %q, got %q", tc.reason, tc.want, got)
				}
				if info, err := login(path, ""); err != nil || info.DefaultNamespace != "ours" {
					t.Errorf("the namespace must be that of the current context, got %+v, error %v", info, err)
				}
			})
		}
	}
}

// TestSettingsWithoutField shows that the settings of a kubeconfig for which there is no single field are kept.
func TestSettingsWithoutField(t *testing.T) {
	c := newCluster(t)
	cases := map[string]struct {
		reason, user, cluster string
		want                  rest.Config
	}{
		"Impersonation": {"requests are sent on behalf of the named user", `token: a, as: bob`, "",
			rest.Config{Impersonate: rest.ImpersonationConfig{UserName: "bob"}}},
		"ServerName": {"the certificate of the server is verified for the given name", `token: a`,
			", tls-server-name: api", rest.Config{TLSClientConfig: rest.TLSClientConfig{ServerName: "api"}}},
		"Uncompressed": {"answers are not compressed if the kubeconfig says so", `token: a`,
			", disable-compression: true", rest.Config{DisableCompression: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info, err := credentials.FromKubeconfig(c.kubeconfig(tc.user, tc.cluster), "")
			if err != nil {
				t.Fatal(err)
			}
			if info.Config == nil {
				t.Fatalf("%s: the configuration is missing", tc.reason)
			}
			got := rest.Config{Impersonate: info.Config.Impersonate, DisableCompression: info.Config.DisableCompression}
			got.ServerName = info.Config.ServerName
			if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
	info, err := credentials.FromKubeconfig(c.kubeconfig(`token: a`, ""), "")
	if err != nil || info.Config != nil {
		t.Errorf("fields must be sufficient for a token: got error %v", err)
	}
}

// TestPairsOfDataAndFiles shows that a certificate can be given as data and its key as a file, and vice versa.
func TestPairsOfDataAndFiles(t *testing.T) {
	c := newCluster(t, "ann")
	certificate, key := c.certificate("ann")
	cases := map[string]struct {
		reason string
		info   credentials.Info
	}{
		"KeyData": {"a file with a certificate can have a key as data",
			credentials.Info{CertificatePath: c.file("crt", certificate), PrivateKeyData: key}},
		"CertificateData": {"a certificate as data can have a file with its key",
			credentials.Info{CertificateData: certificate, PrivateKeyPath: c.file("key", key)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.info.Server, tc.info.CAData = c.server.URL, c.ca
			p, err := connect(t, func() (*credentials.Info, error) { return &tc.info, nil })
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if got, err := p.user(t); got != "ann" || err != nil {
				t.Errorf("%s: got %q, error %v", tc.reason, got, err)
			}
		})
	}
}

// plugin returns a user whose token comes from a command: the contents of the file "plugged" at that time.
func (c *cluster) plugin(token string) string {
	c.t.Helper()
	path := c.file("plugged", []byte(token))
	script := c.file("plugin.sh", fmt.Appendf(nil, "#!/bin/sh\necho call >> %s.calls\nprintf '%%s' "+
		`'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'`+
		"\"$(cat %s)\"'\"}}'\n", path, path))
	return "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [" +
		script + "]}"
}

// TestPluginWhoseTokenExpires shows that client-go calls a plugin again, so an expired token does not need a login.
func TestPluginWhoseTokenExpires(t *testing.T) {
	c := newCluster(t, "Bearer first")
	path := c.kubeconfig(c.plugin("first"), "")
	p, err := connect(t, func() (*credentials.Info, error) { return credentials.FromKubeconfig(path, "") })
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second", "third"} {
		c.setUsers("Bearer " + token)
		c.file("plugged", []byte(token))
		if got, err := p.user(t); got != "Bearer "+token || err != nil {
			t.Errorf("want the token %q, got %q, error %v", token, got, err)
		}
	}
	calls, err := os.ReadFile(c.folder + "/plugged.calls")
	if n := strings.Count(string(calls), "call"); n != 3 || err != nil || p.logins != 1 {
		t.Errorf("%d calls of the plugin and %d logins, want 3 and one; error %v", n, p.logins, err)
	}
	c.setUsers()
	if got, err := p.user(t); err == nil || !strings.Contains(err.Error(), "those that the API server has refused") {
		t.Errorf("a plugin without valid tokens must fail, got %q, error %v", got, err)
	}
}

// TestTokenFileThatChanges shows that a token file is read again early if the server refuses the token.
func TestTokenFileThatChanges(t *testing.T) {
	for how, login := range map[string]func(string, string) (*credentials.Info, error){
		"Handler": credentials.FromKubeconfig, "BuiltIn": credentials.Login,
	} {
		t.Run(how, func(t *testing.T) {
			c := newCluster(t)
			path := c.kubeconfig("tokenFile: "+c.file("token", []byte("first")), "")
			var p *connectedProgram
			for n, token := range []string{"first", "second", "third", "fourth", "fifth"} {
				c.file("token", []byte(token))
				c.setUsers("Bearer " + token)
				if p == nil {
					var err error
					if p, err = connect(t, func() (*credentials.Info, error) { return login(path, "") }); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := p.user(t); got != "Bearer "+token || err != nil || p.logins > n+1 {
					t.Errorf("want the token %q, got %q after %d logins, error %v", token, got, p.logins, err)
				}
			}
		})
	}
}

// TestConnectionThroughProxy shows that the proxy of a kubeconfig or of a handler is used.
func TestConnectionThroughProxy(t *testing.T) {
	withoutCluster(t)
	c := newCluster(t, "Bearer a")
	for how, login := range map[string]func(proxy string) (*credentials.Info, error){
		"Kubeconfig": func(proxy string) (*credentials.Info, error) {
			return credentials.FromKubeconfig(c.kubeconfig("token: a", ", proxy-url: "+proxy), "")
		},
		"BuiltIn": func(proxy string) (*credentials.Info, error) {
			return credentials.Login(c.kubeconfig("token: a", ", proxy-url: "+proxy), "")
		},
		"Handler": func(proxy string) (*credentials.Info, error) {
			return &credentials.Info{Server: c.server.URL, CAData: c.ca, Token: "a", ProxyURL: proxy}, nil
		},
		"TrustEnv": func(string) (*credentials.Info, error) {
			// The proxy of the environment does not exist, and is not used for this machine.
			return &credentials.Info{Server: c.server.URL, CAData: c.ca, Token: "a", TrustEnv: true}, nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			proxy, connections := c.proxy()
			p, err := connect(t, func() (*credentials.Info, error) { return login(proxy) })
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.user(t)
			if n := connections(); got != "Bearer a" || err != nil || (n == 1) != (how != "TrustEnv") {
				t.Errorf("got %q, error %v, by %d connections of the proxy", got, err, n)
			}
		})
	}
}

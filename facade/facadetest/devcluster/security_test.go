package devcluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// startCluster serves a cluster until the test ends. The returned function ends it earlier.
func startCluster(t *testing.T, options devcluster.Options) (*devcluster.Cluster, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cluster, err := devcluster.Start(ctx, options)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	end := func() {
		cancel()
		if err := cluster.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return cluster, end
}

// plainClient trusts the cluster and sends nothing by itself.
func plainClient(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(config.CAData) {
		t.Fatal("the configuration has no certificate authority")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestRequestsAreGuarded(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	config := cluster.Config()
	client := plainClient(t, config)
	address := strings.TrimPrefix(config.Host, "https://")
	port := address[strings.LastIndexByte(address, ':'):]
	changed := config.BearerToken[:len(config.BearerToken)-2] + "AA"
	head, rest, _ := strings.Cut(config.BearerToken, ".")
	_, signature, _ := strings.Cut(rest, ".")
	cases := map[string]struct {
		reason, host, authorization, path string
		want                              int
	}{
		"Good": {"the token and the address of the kubeconfig are accepted",
			address, "Bearer " + config.BearerToken, "/api/v1/namespaces", 200},
		"Localhost": {"the name localhost is accepted", "localhost" + port, "Bearer " + config.BearerToken,
			"/api/v1/namespaces", 200},
		"NoToken": {"a request without a token is refused", address, "", "/api/v1/namespaces", 401},
		"Health":  {"a health check without a token is refused", address, "", "/readyz", 401},
		"Forged": {"a token with a wrong signature is refused",
			address, "Bearer " + changed, "/api/v1/namespaces", 401},
		"Claims": {"a token with other claims is refused", address,
			"Bearer " + head + ".eyJzdWIiOiJ4IiwiZXhwIjo5OTk5OTk5OTk5fQ." + signature, "/api/v1/namespaces", 401},
		"Garbage": {"a malformed token is refused", address, "Bearer ...", "/api/v1/namespaces", 401},
		"Basic": {"another authentication scheme is refused",
			address, "Basic " + config.BearerToken, "/api/v1/namespaces", 401},
		"Rebound": {"another host name is refused, as in DNS rebinding", "evil.example.org" + port,
			"Bearer " + config.BearerToken, "/api/v1/namespaces", 403},
		"OtherPort": {"another port is refused",
			"127.0.0.1:1", "Bearer " + config.BearerToken, "/api/v1/namespaces", 403},
		"NoPort": {"a host without the port is refused",
			"127.0.0.1", "Bearer " + config.BearerToken, "/api/v1/namespaces", 403},
		"Suffix": {"a host name with the address as its prefix is refused", "127.0.0.1.example.org" + port, "Bearer " +
			config.BearerToken, "/", 403},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tc.host
			if tc.authorization != "" {
				r.Header.Set("Authorization", tc.authorization)
			}
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, response.StatusCode, tc.want)
			}
		})
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.0.0.1"} {
		t.Run(address, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if cluster, err := devcluster.Start(ctx, devcluster.Options{Address: address}); err == nil {
				t.Errorf("the address %s must be refused, but is served at %s", address, cluster.Config().Host)
			}
		})
	}
}

func TestKubeconfigFile(t *testing.T) {
	t.Parallel()
	cluster, end := startCluster(t, devcluster.Options{})
	info, err := os.Stat(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %v, want 0600", info.Mode().Perm())
	}
	end()
	if _, err := os.Stat(cluster.Kubeconfig()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary kubeconfig must be removed at the end: %v", err)
	}
}

func TestForeignKubeconfigIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	const foreign = `{"apiVersion":"v1","kind":"Config",` +
		`"clusters":[{"name":"production","cluster":{"server":"https://x"}}]}`
	if err := os.WriteFile(path, []byte(foreign), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := devcluster.Start(t.Context(), devcluster.Options{Kubeconfig: path}); err == nil {
		t.Error("Start must fail for the kubeconfig of another cluster")
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != foreign {
		t.Errorf("the kubeconfig of another cluster must not change: got %s, %v", data, err)
	}
}

func TestOwnKubeconfigIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	_, end := startCluster(t, devcluster.Options{Kubeconfig: path})
	end()
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	startCluster(t, devcluster.Options{Kubeconfig: path})
	second, err := os.ReadFile(path)
	if err != nil || string(first) == string(second) {
		t.Errorf("the kubeconfig of the former cluster must be replaced (%v)", err)
	}
}

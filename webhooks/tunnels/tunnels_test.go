package tunnels_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

func TestHostFor(t *testing.T) {
	named := func(subject, issuer string, hosts ...string) *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{CommonName: subject}, Issuer: pkix.Name{CommonName: issuer}, DNSNames: hosts,
		}
	}
	for name, tc := range map[string]struct {
		reason      string
		certificate *x509.Certificate
		version     string
		want        string
	}{
		"K3d":         {"its certificate says so", named("k3s", "k3s-server-ca@1"), "v1.35.0", "host.k3d.internal"},
		"K3sIssuer":   {"its issuer says so", named("x", "k3s-server-ca@1"), "v1.35.0", "host.k3d.internal"},
		"K3sVersion":  {"its version says so", nil, "v1.35.0+k3s1", "host.k3d.internal"},
		"Minikube":    {"its certificate says so", named("minikube", "minikubeCA"), "", "host.minikube.internal"},
		"Docker":      {"one of its hosts says so", named("a", "b", "docker-for-desktop"), "", "host.docker.internal"},
		"Other":       {"it is somewhere else", named("kube-apiserver", "kubernetes", "kubernetes"), "v1.35.0", ""},
		"Alike":       {"a part of a word is no word", named("my-k3s", "minikubes"), "v1.35.0", ""},
		"Unencrypted": {"nothing is known", nil, "v1.35.0", ""},
	} {
		if got := tunnels.HostFor(tc.certificate, tc.version); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	if _, err := tunnels.Certificate(t.Context(), config); err == nil {
		t.Error("a server that is not trusted is not asked")
	}
	config.Insecure = true
	got, err := tunnels.Certificate(t.Context(), config)
	if err != nil || !got.Equal(server.Certificate()) {
		t.Errorf("got %v and the error %v", got, err)
	}
	got, err = tunnels.Certificate(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"})
	if got != nil || err != nil {
		t.Errorf("there is none without TLS: got %v and the error %v", got, err)
	}
}

func TestClientConfigs(t *testing.T) {
	url := tunnels.ByURL("https://there", []byte("CA"))
	if *url.URL != "https://there" || string(url.CABundle) != "CA" || url.Service != nil {
		t.Errorf("got %+v", url)
	}
	service := tunnels.ByService("ns", "name", 443, "", nil).Service
	if service.Namespace != "ns" || service.Name != "name" || *service.Port != 443 || service.Path != nil {
		t.Errorf("got %+v", service)
	}
	if path := tunnels.ByService("ns", "name", 443, "/ops", nil).Service.Path; path == nil || *path != "/ops" {
		t.Errorf("got the path %v", path)
	}
	want := []string{"name.ns.svc", "name.ns.svc.cluster.local", "name.ns", "name"}
	if delta := cmp.Diff(want, tunnels.ServiceHosts("ns", "name")); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func TestSecret(t *testing.T) {
	if one, other := tunnels.Secret(), tunnels.Secret(); one == other || len(one) < 32 {
		t.Errorf("nobody can guess it: got %q and %q", one, other)
	}
}

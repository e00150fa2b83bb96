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
		"K3d": {"a certificate of k3s is that of k3d",
			named("k3s", "k3s-server-ca@1"), "v1.35.0", "host.k3d.internal"},
		"K3sIssuer": {"an issuer of k3s is that of k3d",
			named("x", "k3s-server-ca@1"), "v1.35.0", "host.k3d.internal"},
		"K3sVersion": {"a version of k3s is that of k3d", nil, "v1.35.0+k3s1", "host.k3d.internal"},
		"Minikube": {"a certificate of minikube is detected",
			named("minikube", "minikubeCA"), "", "host.minikube.internal"},
		"Docker": {"a host of Docker Desktop in the certificate is detected",
			named("a", "b", "docker-for-desktop"), "", "host.docker.internal"},
		"Other": {"a certificate of another cluster is not detected",
			named("kube-apiserver", "kubernetes", "kubernetes"), "v1.35.0", ""},
		"Alike": {"a name that only contains a known one is not detected",
			named("my-k3s", "minikubes"), "v1.35.0", ""},
		"Unencrypted": {"a server without a certificate is not detected", nil, "v1.35.0", ""},
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
		t.Error("an untrusted server must be an error")
	}
	config.Insecure = true
	got, err := tunnels.Certificate(t.Context(), config)
	if err != nil || !got.Equal(server.Certificate()) {
		t.Errorf("want the certificate of the server, got %v and the error %v", got, err)
	}
	got, err = tunnels.Certificate(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"})
	if got != nil || err != nil {
		t.Errorf("a server without TLS must not have a certificate: got %v and the error %v", got, err)
	}
}

func TestClientConfigs(t *testing.T) {
	url := tunnels.ByURL("https://there", []byte("CA"))
	if *url.URL != "https://there" || string(url.CABundle) != "CA" || url.Service != nil {
		t.Errorf("want a configuration with the URL, got %+v", url)
	}
	service := tunnels.ByService("ns", "name", 443, "", nil).Service
	if service.Namespace != "ns" || service.Name != "name" || *service.Port != 443 || service.Path != nil {
		t.Errorf("want a configuration with the Service, got %+v", service)
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
		t.Errorf("the secret must be long and random: got %q and %q", one, other)
	}
}

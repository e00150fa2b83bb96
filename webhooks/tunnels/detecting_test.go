package tunnels_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// otherTunnel is a tunnel that works from any cluster.
var otherTunnel = tunnels.Fixed("https://tunnel.example.org/")

func TestDetecting(t *testing.T) {
	const old, k3s = `{"gitVersion": "v1.35.0"}`, `{"gitVersion": "v1.35.0+k3s1"}`
	for name, tc := range map[string]struct {
		reason    string
		names     []string // of the API server's certificate; the first one is its common name
		version   string
		otherwise tunnels.Tunnel
		want      string
	}{
		"K3d": {"a certificate of k3s is that of k3d",
			[]string{"k3s"}, old, otherTunnel, "https://host.k3d.internal:9443/s"},
		"K3sVersion": {"a version of k3s is that of k3d",
			[]string{"api"}, k3s, otherTunnel, "https://host.k3d.internal:9443/s"},
		"Minikube": {
			"a certificate of minikube is detected",
			[]string{"minikube"}, old, nil, "https://host.minikube.internal:9443/s",
		},
		"Docker": {
			"a host of Docker Desktop in the certificate is detected", []string{"api", "docker-desktop"}, old, nil,
			"https://host.docker.internal:9443/s",
		},
		"Other": {"another cluster uses the other tunnel",
			[]string{"kube-apiserver"}, old, otherTunnel, "https://tunnel.example.org/s"},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := detect(t, tc.names, tc.version, tc.otherwise)
			if d := cmp.Diff([]string{tc.want}, told); d != "" || err != nil {
				t.Errorf("%s: -want, +got:\n%s, and the error %v", tc.reason, d, err)
			}
			host := strings.TrimPrefix(strings.Split(tc.want, ":9443")[0], "https://")
			if name != "Other" && !slices.Contains(tunnels.DetectableHosts(), host) {
				t.Errorf("the hosts of self-signed certificates must include %s", host)
			}
		})
	}
}

func TestDetectingFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, version string
		otherwise       tunnels.Tunnel
		forever         bool
		want            string
	}{
		"Unknown": {
			"an unknown cluster without another tunnel is a permanent error",
			`{"gitVersion": "v1"}`, nil, true, "none of k3d, minikube and Docker Desktop",
		},
		"NoVersion": {"a server without a version is a temporary error",
			"", otherTunnel, false, "asking for the version"},
		"NoJSON": {"a version that is not JSON is a temporary error",
			"<html>", otherTunnel, false, "reading the version"},
	} {
		told, err := detect(t, []string{"kube-apiserver"}, tc.version, tc.otherwise)
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(told) > 0 {
			t.Errorf("%s: %s: reported %q, got the error %v", name, tc.reason, told, err)
		}
		if got := errors.Is(err, reconcile.TerminalError(nil)); got != tc.forever {
			t.Errorf("%s: %s: terminal: %t", name, tc.reason, got)
		}
	}
}

// detect detects an API server with these names in its certificate and returns the reported URLs.
func detect(t *testing.T, names []string, version string, otherwise tunnels.Tunnel) (urls []string, err error) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" || version == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, version)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{named(t, names)}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	local := tunnels.Local{Scheme: "https", Address: "127.0.0.1:9443", Path: "/s", Bundle: []byte("CA")}
	err = tunnels.Detecting{Config: config, HTTPClient: client, Otherwise: otherwise}.Run(
		ctx, local, func(way admissionregistrationv1.WebhookClientConfig) {
			if string(way.CABundle) != "CA" {
				t.Errorf("the bundle must be that of the server: got %q", way.CABundle)
			}
			urls = append(urls, *way.URL)
			cancel()
		})
	return urls, err
}

// named returns a certificate for these names.
func named(t *testing.T, names []string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names[1:],
		NotAfter: time.Now().Add(time.Hour),
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}
}

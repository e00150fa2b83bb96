package kopf_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels/tunnelstest"
)

// quotaEndpoint returns the URL and the CA of the handler's entry; empty if there is no entry.
func quotaEndpoint(t *testing.T, api *memapi.Server) (url string, bundle []byte) {
	t.Helper()
	data, err := json.Marshal(api.Object(validatingResource, "", "shared.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	var read admissionregistrationv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	for _, entry := range read.Webhooks {
		if entry.Name == "quota.test.example.org" && entry.ClientConfig.URL != nil {
			return *entry.ClientConfig.URL, entry.ClientConfig.CABundle
		}
	}
	return "", nil
}

// waitForURL waits until the URL of the entry differs from the former one.
func waitForURL(t *testing.T, api *memapi.Server, before string) (url string, bundle []byte) {
	t.Helper()
	eventually(t, func() error {
		if url, bundle = quotaEndpoint(t, api); url == before {
			return fmt.Errorf("the entry still has the URL %q", url)
		}
		return nil
	})
	return url, bundle
}

// TestTunnelUnderMain shows that a tunnel leads to the handlers at a path that cannot be guessed (D-tunnel-path),
// and that the entry follows the tunnel when its URL changes.
func TestTunnelUnderMain(t *testing.T) {
	api, tunnel := widgetsOnly(), tunnelstest.New()
	stop := serveUnderMain(t, api, kopf.AdmissionSettings{
		Managed: "shared.example.org", Tunnel: tunnel, Port: freePort(t),
	})
	first, bundle := waitForURL(t, api, "")
	wantDenial(t, first, func() (*tls.Config, error) { return trustBundle(bundle), nil })
	secret := strings.TrimSuffix(strings.SplitN(first, "/", 4)[3], quotaPath)
	if len(secret) < 32 || strings.Contains(secret, "/") {
		t.Errorf("the path has a secret that cannot be guessed: got %q", first)
	}
	guessed := strings.Replace(first, "/"+secret, "", 1)
	if err := askQuota(t, guessed, trustBundle(bundle)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("nothing is served without the secret: got %v", err)
	}
	tunnel.Move()
	second, bundle := waitForURL(t, api, first)
	wantDenial(t, second, func() (*tls.Config, error) { return trustBundle(bundle), nil })
	stop()
	if url, _ := quotaEndpoint(t, api); url != "" {
		t.Errorf("the exit removes the entry of the tunnel: got %q", url)
	}
}

// versionTransport adds a version endpoint to an API server.
type versionTransport struct {
	http.RoundTripper
	version string
}

func (v versionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/version" {
		return v.RoundTripper.RoundTrip(r)
	}
	body := io.NopCloser(strings.NewReader(`{"gitVersion": "` + v.version + `"}`))
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: body}, nil
}

// TestDetectClusterUnderMain shows that a detected local cluster gets the URL of its host name, other clusters get
// the configured URL, and the certificate is valid for all of these hosts.
func TestDetectClusterUnderMain(t *testing.T) {
	port := freePort(t)
	for version, want := range map[string]string{
		"v1.35.0+k3s1": fmt.Sprintf("https://host.k3d.internal:%d%s", port, quotaPath),
		"v1.35.0":      "https://here.example.org" + quotaPath,
	} {
		api := widgetsOnly()
		stop := serveUnderMain(t, versionTransport{api, version}, kopf.AdmissionSettings{
			Managed: "shared.example.org", DetectCluster: true, Port: port, URL: "https://here.example.org",
		})
		url, bundle := waitForURL(t, api, "")
		if url != want {
			t.Errorf("%s: unexpected URL of the entry: want %s, got %s", version, want, url)
		}
		for _, host := range append(tunnels.DetectableHosts(), "here.example.org", "localhost") {
			trust := trustBundle(bundle)
			trust.ServerName = host
			if err := askQuota(t, fmt.Sprintf("https://localhost:%d%s", port, quotaPath), trust); err != nil {
				t.Errorf("the certificate is valid for %s: got %v", host, err)
			}
		}
		stop()
	}
}

// TestDetectClusterFails shows that an unknown cluster without another URL ends the program. Deviation:
// D-detect-cluster.
func TestDetectClusterFails(t *testing.T) {
	withoutCluster(t)
	op := kopf.New("test.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addWidgets}, Admission: kopf.AdmissionSettings{
			Managed: "shared.example.org", DetectCluster: true, Port: freePort(t),
		},
	})
	op.OnLogin("fn", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		return &kopf.ConnectionInfo{Config: memapi.Config(versionTransport{newAdmissionAPI(), "v1.35.0"})}, nil
	})
	kopf.For(op, &Widget{}).Validate("quota", registerAdmission)
	code, _, errs := execute(t, op, "-A")
	if code != 1 || !strings.Contains(errs, "none of k3d, minikube and Docker Desktop") {
		t.Errorf("an unknown cluster ends the program: exit code %d: %s", code, errs)
	}
}

// TestClientCAUnderMain shows that ClientCA refuses certificates of other CAs, and that clients without a
// certificate are refused only with RequireClientCertificate.
func TestClientCAUnderMain(t *testing.T) {
	known, stranger := clientPair(t, "known"), clientPair(t, "stranger")
	cas := filepath.Join(t.TempDir(), "clients.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: known.Certificate[0]})
	if err := os.WriteFile(cas, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, required := range []bool{false, true} {
		dump, port := filepath.Join(t.TempDir(), "ca.crt"), freePort(t)
		stop := serveUnderMain(t, widgetsOnly(), kopf.AdmissionSettings{
			SelfSigned: true, Port: port, DumpCA: dump, ClientCA: cas, RequireClientCertificate: required,
		})
		url := fmt.Sprintf("https://localhost:%d%s", port, quotaPath)
		as := func(pair *tls.Certificate) func() (*tls.Config, error) {
			return func() (*tls.Config, error) {
				config, err := trustCAFile(dump)()
				if err == nil && pair != nil {
					config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
						return pair, nil
					}
				}
				return config, err
			}
		}
		wantDenial(t, url, as(known))
		if config, err := as(stranger)(); err != nil || askQuota(t, url, config) == nil {
			t.Errorf("required: %t: a client with an unknown certificate is refused: %v", required, err)
		}
		if config, err := as(nil)(); err != nil || (askQuota(t, url, config) != nil) != required {
			t.Errorf("required: %t: a client without a certificate is refused if one is required: %v", required, err)
		}
		stop()
	}
}

// clientPair returns a self-signed client certificate.
func clientPair(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}
}

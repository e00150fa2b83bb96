package kopf_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// serveUnderMain runs an operator with a handler that denies every request, as Main does. It stops at the end of
// the test.
func serveUnderMain(t *testing.T, api http.RoundTripper, settings kopf.AdmissionSettings) (stop func()) {
	t.Helper()
	withoutCluster(t)
	op := kopf.New("test.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addWidgets}, Admission: settings,
	})
	op.OnLogin("fn", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		return &kopf.ConnectionInfo{Config: memapi.Config(api)}, nil
	})
	kopf.For(op, &Widget{}).Validate("quota", func(context.Context, *Admission) error {
		return kopf.Deny(403, "no more")
	})
	end, stopped := startCommand(t, op), false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if code, said := end(); code != 0 {
			t.Errorf("the program stops with exit code 0: got %d\n%s", code, said)
		}
	}
	t.Cleanup(stop)
	return stop
}

const quotaPath = "/test.example.org/validate/quota"

// wantDenial repeats a review until there is a response, and requires that the response is the denial of the
// handler.
func wantDenial(t *testing.T, url string, config func() (*tls.Config, error)) {
	t.Helper()
	eventually(t, func() error {
		trust, err := config()
		if err != nil {
			return err
		}
		return askQuota(t, url, trust)
	})
}

// eventually repeats the function until it returns no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// askQuota sends one review. Every response except the denial is an error.
func askQuota(t *testing.T, url string, config *tls.Config) error {
	t.Helper()
	body, err := json.Marshal(map[string]any{"request": request(nil)})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(asked)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(answer.Body)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text.String(), "no more") {
		return fmt.Errorf("got %d %s, %w", answer.StatusCode, text.String(), errors.Join(err))
	}
	return nil
}

// trustCAFile returns a function that reads the CA from a file.
func trustCAFile(file string) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		bundle, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return trustBundle(bundle), nil
	}
}

func trustBundle(bundle []byte) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func withoutTLS() (*tls.Config, error) { return nil, nil }

// freePort returns a free port outside of the range from which the system assigns ports.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 10000 + rand.IntN(20000)
		if listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("found no free port")
	return 0
}

// widgetsOnly returns an API server with widgets.
func widgetsOnly() *memapi.Server {
	api := newAdmissionAPI()
	api.Install(widgetResource)
	return api
}

// TestExtraHostsAndTLSOptsUnderMain shows that the certificate is also valid for the extra hosts and that TLSOpts
// apply.
func TestExtraHostsAndTLSOptsUnderMain(t *testing.T) {
	dump, port := filepath.Join(t.TempDir(), "ca.crt"), freePort(t)
	serveUnderMain(t, widgetsOnly(), kopf.AdmissionSettings{
		SelfSigned: true, Port: port, DumpCA: dump, ExtraHosts: []string{"proxy.example.org"},
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }},
	})
	url, newest := fmt.Sprintf("https://localhost:%d%s", port, quotaPath), uint16(tls.VersionTLS13)
	byProxy := func() (*tls.Config, error) {
		config, err := trustCAFile(dump)()
		if err == nil {
			config.ServerName, config.MaxVersion = "proxy.example.org", newest
		}
		return config, err
	}
	wantDenial(t, url, byProxy)
	newest = tls.VersionTLS12
	config, err := byProxy()
	if err != nil {
		t.Fatal(err)
	}
	if err := askQuota(t, url, config); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLSOpts make the server refuse clients of TLS 1.2: got %v", err)
	}
}

// TestInsecureUnderMain shows that Insecure serves plain HTTP, for proxies that terminate TLS, and that a program
// also serves Kopf's paths, which existing configurations contain. Deviation: D-webhook-paths.
func TestInsecureUnderMain(t *testing.T) {
	port := freePort(t)
	serveUnderMain(t, widgetsOnly(), kopf.AdmissionSettings{Insecure: true, Port: port})
	for _, path := range []string{quotaPath, "/quota", "/", "/test.example.org/quota", "/test.example.org/"} {
		wantDenial(t, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), withoutTLS)
	}
}

// userServer is a webhook server of the user with its own listener.
type userServer struct {
	webhook.Server // provides the multiplexer
	listener       net.Listener
}

func (m userServer) Start(ctx context.Context) error {
	server := &http.Server{Handler: m.WebhookMux(), ReadHeaderTimeout: time.Minute}
	go func() { <-ctx.Done(); _ = server.Close() }()
	_ = server.Serve(m.listener)
	return nil
}

func (userServer) StartedChecker() healthz.Checker { return healthz.Ping }

// TestOwnServerUnderMain shows that the user's own server receives the reviews and that the entries contain the
// configured URL and CA.
func TestOwnServerUnderMain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(t.TempDir(), "ca.crt")
	ofProxy := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(t).Raw})
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	if err := os.WriteFile(bundle, slices.Concat(key, ofProxy), 0o600); err != nil {
		t.Fatal(err)
	}
	api := widgetsOnly()
	serveUnderMain(t, api, kopf.AdmissionSettings{
		Server: userServer{webhook.NewServer(webhook.Options{}), listener}, Managed: "shared.example.org",
		URL: "https://proxy.example.org/here", CAFile: bundle,
	})
	wantDenial(t, "http://"+listener.Addr().String()+quotaPath, withoutTLS)
	eventually(t, func() error {
		url, ca := quotaEndpoint(t, api)
		if url != "https://proxy.example.org/here"+quotaPath || !bytes.Equal(ca, ofProxy) {
			return fmt.Errorf("the entry has URL %q and CA %q", url, ca)
		}
		return nil
	})
}

package facade_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// What cannot be is told at the set-up, with the name of the field.
func TestAdmissionSettingsMistakes(t *testing.T) {
	const here = "https://here"
	tests := map[string]struct {
		reason string
		given  kopf.AdmissionSettings
		want   string
	}{
		"nowhere": {
			"the API server would ask nobody", kopf.AdmissionSettings{Managed: "shared", SelfSigned: true},
			"Admission.Managed: it is not known where",
		},
		"name": {
			"the API server takes no such name", kopf.AdmissionSettings{Managed: "Shared!", URL: here},
			`Admission.Managed: "Shared!" cannot be`,
		},
		"two ways": {
			"it takes one", kopf.AdmissionSettings{URL: here, Service: "a/b"},
			"Admission.URL: there is a Service, too",
		},
		"HTTP": {
			"it must be TLS", kopf.AdmissionSettings{URL: "http://here"}, `Admission.URL: "http://here" cannot`,
		},
		"no scheme": {
			"it must be TLS", kopf.AdmissionSettings{URL: "here:9443"}, `Admission.URL: "here:9443" cannot`,
		},
		"query": {
			"it would be refused", kopf.AdmissionSettings{URL: here + "?a"}, `Admission.URL: "https://here?a" has`,
		},
		"no namespace": {
			"a Service is somewhere", kopf.AdmissionSettings{Service: "webhook"}, `Admission.Service: "webhook" is not`,
		},
		"no port": {
			"it is a number", kopf.AdmissionSettings{Service: "a/b:https"}, `Admission.Service: "https" is no port`,
		},
		"Secret": {
			"it is somewhere, too", kopf.AdmissionSettings{Secret: "b", URL: here}, `Admission.Secret: "b" is not`,
		},
		"no hosts": {
			"a certificate is for hosts", kopf.AdmissionSettings{Secret: "a/b"},
			"Admission.Secret: it is not known which",
		},
		"port": {"there is none", kopf.AdmissionSettings{Port: 70000}, "Admission.Port: 70000"},
		"two certificates": {
			"one would not be used", kopf.AdmissionSettings{CertificateDir: "x", SelfSigned: true},
			"Admission.CertificateDir, Admission.SelfSigned: each",
		},
		"self-signed replicas": {
			"each has another one", kopf.AdmissionSettings{Service: "a/b", SelfSigned: true},
			"Admission.SelfSigned: behind a Service",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.Settings{Admission: tc.given})
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), "kopf.New: "+tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// With handlers of admission, there must be a server for them. It is not the same one in a program and in a manager.
func TestAdmissionServer(t *testing.T) {
	tests := map[string]struct {
		reason  string
		given   kopf.AdmissionSettings
		program string // what a program is told; empty is nothing
		manager string // what a given manager is told
	}{
		"none": {
			"a manager has a server of its own", kopf.AdmissionSettings{},
			"Admission: there are handlers of admission, and no certificate", "",
		},
		"Service": {
			"a program keeps its certificate in a Secret then", kopf.AdmissionSettings{Service: "a/b"}, "", "",
		},
		"self-signed": {
			"other replicas have another one", kopf.AdmissionSettings{SelfSigned: true},
			"", "Admission.SelfSigned: it is for kopf.Main",
		},
		"port": {
			"it is the server's", kopf.AdmissionSettings{Service: "a/b", Port: 1},
			"", "Admission.Port: it is for kopf.Main",
		},
		"dump": {
			"of a server of its own, nothing is known", kopf.AdmissionSettings{DumpCA: "x"},
			"no certificate", "Admission.DumpCA: only the webhook server",
		},
		"no files": {
			"it is told at once", kopf.AdmissionSettings{CertificateDir: "/nowhere"},
			"Admission.CertificateDir: reading", "Admission.CertificateDir: reading",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, program := range []bool{true, false} {
				op := kopf.New("test.example.org", kopf.Settings{Admission: tc.given})
				kopf.For(op, &Widget{}).Validate("fn", admit)
				m, want := newManager(t, newScheme(t)), tc.manager
				setUp := func() error { return op.SetupWithManager(m) }
				if program {
					want = tc.program
					setUp = func() error { return kopf.SetUpAsProgram(op, m) }
					if err := kopf.StartUp(t.Context(), op); err != nil {
						t.Fatal(err)
					}
				}
				err := setUp()
				if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, program: %t: want %q, got %v", tc.reason, program, want, err)
				}
			}
		})
	}
}

// Nobody's certificate is taken from a server that has one.
func TestAdmissionServerHasACertificate(t *testing.T) {
	has := webhook.NewServer(webhook.Options{TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	}}})
	for on, want := range map[webhook.Server]string{
		has:                                  "has a certificate already",
		&socketless{mux: http.NewServeMux()}: "cannot be given a certificate",
	} {
		m, err := ctrl.NewManager(memapi.Config(memapi.New()), ctrl.Options{
			Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: on,
		})
		if err != nil {
			t.Fatal(err)
		}
		op := kopf.New("test.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
			Service: "a/b", Secret: "a/c",
		}})
		kopf.For(op, &Widget{}).Validate("fn", admit)
		if err := op.SetupWithManager(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A program serves on the port, with a certificate that the dumped file vouches for.
func TestSelfSignedProgram(t *testing.T) {
	api, dump, port := memapi.New(), filepath.Join(t.TempDir(), "ca.crt"), freePort(t)
	api.Install(served)
	op := kopf.New("test.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
		SelfSigned: true, Port: port, DumpCA: dump,
	}})
	kopf.For(op, &Widget{}).Validate("fn", admit)
	m, err := ctrl.NewManager(memapi.Config(api), ctrl.Options{
		Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err == nil {
		err = kopf.StartUp(t.Context(), op)
	}
	if err == nil {
		err = kopf.SetUpAsProgram(op, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.Start(t.Context()) }()
	body, err := json.Marshal(map[string]any{"request": request(nil)})
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("https://localhost:%d/test.example.org/validate/fn", port)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		status, err := postTrusting(t, dump, url, body)
		if status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d, %v", status, err)
		}
	}
}

func postTrusting(t *testing.T, ca, url string, body []byte) (status int, err error) {
	t.Helper()
	bundle, err := os.ReadFile(ca)
	if err != nil {
		return 0, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

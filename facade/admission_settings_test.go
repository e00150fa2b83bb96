package kopf_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
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
			"Admission.Service, Admission.URL: each of them is a way",
		},
		"tunnel unmanaged": {
			"nobody would be told", kopf.AdmissionSettings{Tunnel: tunnels.Fixed(here)},
			"Admission.Tunnel: the API server would not be told",
		},
		"tunnel and URL": {
			"one of them would not be used", kopf.AdmissionSettings{
				Managed: "shared", URL: here, Tunnel: tunnels.Fixed(here),
			}, "Admission.URL, Admission.Tunnel: each",
		},
		"detection in the cluster": {
			"there is nothing to detect", kopf.AdmissionSettings{
				Managed: "shared", Service: "a/b", DetectCluster: true,
			}, "Admission.DetectCluster: with a Service",
		},
		"insecure detection": {
			"the API server calls nobody without TLS", kopf.AdmissionSettings{
				Managed: "shared", DetectCluster: true, Insecure: true,
			}, "Admission.Insecure: the API server",
		},
		"extra URL": {
			"a certificate is for hosts", kopf.AdmissionSettings{
				URL: here, SelfSigned: true, ExtraHosts: []string{"*.example.org", "::1", "https://proxy:8443"},
			}, `Admission.ExtraHosts: "https://proxy:8443" is not a host`,
		},
		"extra host of files": {
			"the certificate is there already", kopf.AdmissionSettings{
				URL: here, CertificateDir: "x", ExtraHosts: []string{"proxy"},
			}, "Admission.ExtraHosts: with Admission.CertificateDir",
		},
		"TLS of another server": {
			"the options would have no effect", kopf.AdmissionSettings{
				URL: here, Insecure: true, TLSOpts: []func(*tls.Config){func(*tls.Config) {}},
			}, "Admission.TLSOpts: with Admission.Insecure",
		},
		"insecure certificate": {
			"nobody would see it", kopf.AdmissionSettings{Insecure: true, CertificateDir: "x"},
			"Admission.Insecure: there is no TLS, so nobody sees the certificate of Admission.CertificateDir",
		},
		"insecure clients": {
			"they cannot show any", kopf.AdmissionSettings{Insecure: true, ClientCA: "x"},
			"Admission.ClientCA: without",
		},
		"clients of another server": {
			"it would not be used", kopf.AdmissionSettings{Server: &socketless{}, ClientCA: "x"},
			"Admission.ClientCA: Server decides",
		},
		"address of another server": {
			"it would not be used", kopf.AdmissionSettings{Server: &socketless{}, Address: "127.0.0.1"},
			"Admission.Address: Server decides",
		},
		"unknown clients": {
			"none could be served", kopf.AdmissionSettings{RequireClientCertificate: true},
			"Admission.RequireClientCertificate: it is not known",
		},
		"two CAs": {
			"one would not be used", kopf.AdmissionSettings{CertificateDir: "x", CABundle: []byte("y")},
			"Admission.CABundle: the CA is that of Admission.CertificateDir",
		},
		"address": {
			"a name may be of several", kopf.AdmissionSettings{Address: "localhost:9443"},
			`Admission.Address: "localhost:9443" is no address`,
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
		"detection": {
			"a certificate in memory is enough", kopf.AdmissionSettings{Managed: "shared", DetectCluster: true},
			"", "Admission.DetectCluster: it is for kopf.Main",
		},
		"tunnel": {
			"a certificate in memory is enough", kopf.AdmissionSettings{
				Managed: "shared", Tunnel: tunnels.Fixed("https://here"),
			}, "", "Admission.Tunnel: it is for kopf.Main",
		},
		"insecure": {
			"somebody else ends TLS", kopf.AdmissionSettings{Service: "a/b", Insecure: true},
			"", "Admission.Insecure: it is for kopf.Main",
		},
		"server": {
			"it has what it needs", kopf.AdmissionSettings{Server: &socketless{}},
			"", "Admission.Server: it is for kopf.Main",
		},
		"no client CA": {
			"the set-up reports it", kopf.AdmissionSettings{SelfSigned: true, ClientCA: "/nowhere"},
			"Admission.ClientCA: reading", "Admission.SelfSigned",
		},
		"no CA bundle": {
			"the set-up reports it", kopf.AdmissionSettings{CAFile: "/nowhere", Insecure: true},
			"Admission.CAFile: reading", "Admission.Insecure",
		},
		"another CA": {
			"the certificate is of the Secret", kopf.AdmissionSettings{Service: "a/b", CABundle: []byte("x")},
			"Admission.CABundle: the CA is that of the operator's", "Admission.CABundle: reading",
		},
		"no files": {
			"the set-up reports it", kopf.AdmissionSettings{CertificateDir: "/nowhere"},
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

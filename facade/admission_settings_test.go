package kopf_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// TestAdmissionServer shows which admission settings are errors in a program and in a manager of the project. A
// program creates its webhook server; a manager already has one.
func TestAdmissionServer(t *testing.T) {
	tests := map[string]struct {
		reason   string
		settings kopf.AdmissionSettings
		program  string // the expected error in a program; empty is none
		manager  string // the expected error in a manager of the project
	}{
		"none": {
			"a program needs a certificate, a manager has a server", kopf.AdmissionSettings{},
			"Admission: there are handlers of admission, and no certificate", "",
		},
		"self-signed": {
			"SelfSigned is for programs only", kopf.AdmissionSettings{SelfSigned: true},
			"", "Admission.SelfSigned: it is for kopf.Main",
		},
		"port": {
			"Port is for programs only", kopf.AdmissionSettings{Service: "a/b", Port: 1},
			"", "Admission.Port: it is for kopf.Main",
		},
		"dump": {
			"DumpCA needs a certificate of the operator", kopf.AdmissionSettings{DumpCA: "x"},
			"no certificate", "Admission.DumpCA: only the webhook server",
		},
		"detection": {
			"DetectCluster is for programs only", kopf.AdmissionSettings{Managed: "shared", DetectCluster: true},
			"", "Admission.DetectCluster: it is for kopf.Main",
		},
		"tunnel": {
			"Tunnel is for programs only", kopf.AdmissionSettings{
				Managed: "shared", Tunnel: tunnels.Fixed("https://here"),
			}, "", "Admission.Tunnel: it is for kopf.Main",
		},
		"insecure": {
			"Insecure is for programs only", kopf.AdmissionSettings{Service: "a/b", Insecure: true},
			"", "Admission.Insecure: it is for kopf.Main",
		},
		"server": {
			"Server is for programs only", kopf.AdmissionSettings{Server: &portlessServer{}},
			"", "Admission.Server: it is for kopf.Main",
		},
		"no CA bundle": {
			"a missing CA file is an error", kopf.AdmissionSettings{CAFile: "/nowhere", Insecure: true},
			"Admission.CAFile: reading", "Admission.Insecure",
		},
		"another CA": {
			"a CA bundle together with the operator's own CA is an error",
			kopf.AdmissionSettings{Service: "a/b", CABundle: []byte("x")},
			"Admission.CABundle: the CA is that of the operator's", "Admission.CABundle: reading",
		},
		"no files": {
			"a missing certificate directory is an error", kopf.AdmissionSettings{CertificateDir: "/nowhere"},
			"Admission.CertificateDir: reading", "Admission.CertificateDir: reading",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, program := range []bool{true, false} {
				op := kopf.New("test.example.org", kopf.Settings{Admission: tc.settings})
				kopf.For(op, &Widget{}).Validate("fn", registerAdmission)
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

// TestAdmissionServerHasACertificate shows that the set-up fails if the manager's webhook server already has a
// certificate or cannot get one.
func TestAdmissionServerHasACertificate(t *testing.T) {
	has := webhook.NewServer(webhook.Options{TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	}}})
	for on, want := range map[webhook.Server]string{
		has:                                      "has a certificate already",
		&portlessServer{mux: http.NewServeMux()}: "cannot be given a certificate",
	} {
		m := managerOn(t, memapi.New(), func(o *ctrl.Options) { o.WebhookServer = on })
		op := kopf.New("test.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
			Service: "a/b", Secret: "a/c",
		}})
		kopf.For(op, &Widget{}).Validate("fn", registerAdmission)
		if err := op.SetupWithManager(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the webhook server cannot get the certificate: want %q, got %v", want, err)
		}
	}
}

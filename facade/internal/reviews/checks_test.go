package reviews_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// otherServer is a webhook server of the user.
type otherServer struct{ webhook.Server }

func TestCheck(t *testing.T) {
	const here = "https://here"
	tests := map[string]struct {
		reason string
		given  reviews.ReviewSettings
		want   string
	}{
		"nowhere": {
			"the API server does not have an address", reviews.ReviewSettings{Managed: "shared", SelfSigned: true},
			"Admission.Managed: it is not known where",
		},
		"name": {
			"the API server takes no such name", reviews.ReviewSettings{Managed: "Shared!", URL: here},
			`Admission.Managed: "Shared!" cannot be`,
		},
		"two ways": {
			"it takes one", reviews.ReviewSettings{URL: here, Service: "a/b"},
			"Admission.Service, Admission.URL: each of them is a way",
		},
		"tunnel unmanaged": {
			"the API server needs the address", reviews.ReviewSettings{Tunnel: tunnels.Fixed(here)},
			"Admission.Tunnel: the API server would not get the address",
		},
		"tunnel and URL": {
			"one of them would not be used", reviews.ReviewSettings{
				Managed: "shared", URL: here, Tunnel: tunnels.Fixed(here),
			}, "Admission.URL, Admission.Tunnel: each",
		},
		"detection in the cluster": {
			"there is nothing to detect", reviews.ReviewSettings{
				Managed: "shared", Service: "a/b", DetectCluster: true,
			}, "Admission.DetectCluster: with a Service",
		},
		"insecure detection": {
			"the API server always uses TLS", reviews.ReviewSettings{
				Managed: "shared", DetectCluster: true, Insecure: true,
			}, "Admission.Insecure: the API server",
		},
		"extra URL": {
			"a certificate is for hosts", reviews.ReviewSettings{
				URL: here, SelfSigned: true, ExtraHosts: []string{"*.example.org", "::1", "https://proxy:8443"},
			}, `Admission.ExtraHosts: "https://proxy:8443" is not a host`,
		},
		"extra host of files": {
			"the certificate is there already", reviews.ReviewSettings{
				URL: here, CertificateDir: "x", ExtraHosts: []string{"proxy"},
			}, "Admission.ExtraHosts: with Admission.CertificateDir",
		},
		"TLS of another server": {
			"the options would have no effect", reviews.ReviewSettings{
				URL: here, Insecure: true, TLSOpts: []func(*tls.Config){func(*tls.Config) {}},
			}, "Admission.TLSOpts: with Admission.Insecure",
		},
		"insecure certificate": {
			"it has no effect", reviews.ReviewSettings{Insecure: true, CertificateDir: "x"},
			"Admission.Insecure: there is no TLS, so no client sees the certificate of Admission.CertificateDir",
		},
		"insecure clients": {
			"they cannot show any", reviews.ReviewSettings{Insecure: true, ClientCA: "x"},
			"Admission.ClientCA: without",
		},
		"clients of another server": {
			"it would not be used", reviews.ReviewSettings{Server: otherServer{}, ClientCA: "x"},
			"Admission.ClientCA: Server decides",
		},
		"address of another server": {
			"it would not be used", reviews.ReviewSettings{Server: otherServer{}, Address: "127.0.0.1"},
			"Admission.Address: Server decides",
		},
		"unknown clients": {
			"none could be served", reviews.ReviewSettings{RequireClientCertificate: true},
			"Admission.RequireClientCertificate: it is not known",
		},
		"two CAs": {
			"one would not be used", reviews.ReviewSettings{CertificateDir: "x", CABundle: []byte("y")},
			"Admission.CABundle: the CA is that of Admission.CertificateDir",
		},
		"address": {
			"a name may be of several", reviews.ReviewSettings{Address: "localhost:9443"},
			`Admission.Address: "localhost:9443" is not an IP address`,
		},
		"HTTP": {
			"it must be TLS", reviews.ReviewSettings{URL: "http://here"}, `Admission.URL: "http://here" cannot`,
		},
		"no scheme": {
			"it must be TLS", reviews.ReviewSettings{URL: "here:9443"}, `Admission.URL: "here:9443" cannot`,
		},
		"query": {
			"it would be refused", reviews.ReviewSettings{URL: here + "?a"}, `Admission.URL: "https://here?a" has`,
		},
		"no namespace": {
			"a Service is somewhere", reviews.ReviewSettings{Service: "webhook"}, `Admission.Service: "webhook" is not`,
		},
		"no port": {
			"it is a number", reviews.ReviewSettings{Service: "a/b:https"}, `Admission.Service: "https" is not a port`,
		},
		"Secret": {
			"it is somewhere, too", reviews.ReviewSettings{Secret: "b", URL: here}, `Admission.Secret: "b" is not`,
		},
		"no hosts": {
			"a certificate is for hosts", reviews.ReviewSettings{Secret: "a/b"},
			"Admission.Secret: it is not known which",
		},
		"port": {"there is none", reviews.ReviewSettings{Port: 70000}, "Admission.Port: 70000"},
		"two certificates": {
			"one would not be used", reviews.ReviewSettings{CertificateDir: "x", SelfSigned: true},
			"Admission.CertificateDir, Admission.SelfSigned: each",
		},
		"self-signed replicas": {
			"each has another one", reviews.ReviewSettings{Service: "a/b", SelfSigned: true},
			"Admission.SelfSigned: behind a Service",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(tc.given.Check()...); !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestCheckServer(t *testing.T) {
	tests := map[string]struct {
		reason           string
		given            reviews.ReviewSettings
		program, manager string // the mistakes; empty is none
	}{
		"None": {
			"a manager has a server of its own", reviews.ReviewSettings{}, "no certificate to serve them with", "",
		},
		"Finalizer": {
			"the handler is the operator's", reviews.ReviewSettings{FinalizerOnCreate: true},
			"that of FinalizerOnCreate among them", "",
		},
		"Service":    {"the certificate is in a Secret", reviews.ReviewSettings{Service: "a/b"}, "", ""},
		"SelfSigned": {"the certificate is in memory", reviews.ReviewSettings{SelfSigned: true}, "", ""},
		"Insecure":   {"a proxy terminates TLS", reviews.ReviewSettings{Insecure: true}, "", ""},
		"Server":     {"it is configured by itself", reviews.ReviewSettings{Server: otherServer{}}, "", ""},
		"Dump": {
			"the certificate of a server is unknown", reviews.ReviewSettings{DumpCA: "x", Server: otherServer{}},
			"Admission.DumpCA: only the webhook server", "Admission.DumpCA: only the webhook server",
		},
		"OtherCA": {
			"the certificate is of the Secret", reviews.ReviewSettings{Service: "a/b", CAFile: "x"},
			"Admission.CAFile: the CA is that of the operator's own", "",
		},
		"NoClientCA": {
			"the file is missing", reviews.ReviewSettings{SelfSigned: true, ClientCA: "/nowhere"},
			"Admission.ClientCA: reading", "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for program, want := range map[bool]string{true: tc.program, false: tc.manager} {
				err := tc.given.CheckServer(program)
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, program: %t: want %q, got %v", tc.reason, program, want, err)
				}
			}
		})
	}
}

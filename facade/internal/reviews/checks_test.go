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
		reason   string
		settings reviews.ReviewSettings
		want     string
	}{
		"nowhere": {
			"managed configurations without an address of the server are an error",
			reviews.ReviewSettings{Managed: "shared", SelfSigned: true},
			"Admission.Managed: it is not known where",
		},
		"name": {
			"an invalid name of a managed configuration is an error",
			reviews.ReviewSettings{Managed: "Shared!", URL: here},
			`Admission.Managed: "Shared!" cannot be`,
		},
		"two ways": {
			"a Service and a URL exclude each other", reviews.ReviewSettings{URL: here, Service: "a/b"},
			"Admission.Service, Admission.URL: each of them is a way",
		},
		"tunnel unmanaged": {
			"a tunnel without a managed configuration is an error", reviews.ReviewSettings{Tunnel: tunnels.Fixed(here)},
			"Admission.Tunnel: the API server would not get the address",
		},
		"tunnel and URL": {
			"a tunnel and a URL exclude each other", reviews.ReviewSettings{
				Managed: "shared", URL: here, Tunnel: tunnels.Fixed(here),
			}, "Admission.URL, Admission.Tunnel: each",
		},
		"detection in the cluster": {
			"the detection of the cluster is an error with a Service", reviews.ReviewSettings{
				Managed: "shared", Service: "a/b", DetectCluster: true,
			}, "Admission.DetectCluster: with a Service",
		},
		"insecure detection": {
			"the detection of the cluster is an error without TLS", reviews.ReviewSettings{
				Managed: "shared", DetectCluster: true, Insecure: true,
			}, "Admission.Insecure: the API server",
		},
		"extra URL": {
			"a URL as an extra host is an error", reviews.ReviewSettings{
				URL: here, SelfSigned: true, ExtraHosts: []string{"*.example.org", "::1", "https://proxy:8443"},
			}, `Admission.ExtraHosts: "https://proxy:8443" is not a host`,
		},
		"extra host of files": {
			"extra hosts are an error with a given certificate", reviews.ReviewSettings{
				URL: here, CertificateDir: "x", ExtraHosts: []string{"proxy"},
			}, "Admission.ExtraHosts: with Admission.CertificateDir",
		},
		"TLS of another server": {
			"TLS options without TLS are an error", reviews.ReviewSettings{
				URL: here, Insecure: true, TLSOpts: []func(*tls.Config){func(*tls.Config) {}},
			}, "Admission.TLSOpts: with Admission.Insecure",
		},
		"insecure certificate": {
			"a certificate without TLS is an error", reviews.ReviewSettings{Insecure: true, CertificateDir: "x"},
			"Admission.Insecure: there is no TLS, so no client sees the certificate of Admission.CertificateDir",
		},
		"insecure clients": {
			"a client CA without TLS is an error", reviews.ReviewSettings{Insecure: true, ClientCA: "x"},
			"Admission.ClientCA: without",
		},
		"clients of another server": {
			"a client CA is an error with a server of the user",
			reviews.ReviewSettings{Server: otherServer{}, ClientCA: "x"},
			"Admission.ClientCA: Server decides",
		},
		"address of another server": {
			"an address is an error with a server of the user",
			reviews.ReviewSettings{Server: otherServer{}, Address: "127.0.0.1"},
			"Admission.Address: Server decides",
		},
		"unknown clients": {
			"required client certificates without a client CA are an error",
			reviews.ReviewSettings{RequireClientCertificate: true},
			"Admission.RequireClientCertificate: it is not known",
		},
		"two CAs": {
			"a CA bundle and a certificate directory exclude each other",
			reviews.ReviewSettings{CertificateDir: "x", CABundle: []byte("y")},
			"Admission.CABundle: the CA is that of Admission.CertificateDir",
		},
		"address": {
			"an address that is not an IP address is an error", reviews.ReviewSettings{Address: "localhost:9443"},
			`Admission.Address: "localhost:9443" is not an IP address`,
		},
		"HTTP": {
			"a URL without TLS is an error",
			reviews.ReviewSettings{URL: "http://here"}, `Admission.URL: "http://here" cannot`,
		},
		"no scheme": {
			"a URL without a scheme is an error",
			reviews.ReviewSettings{URL: "here:9443"}, `Admission.URL: "here:9443" cannot`,
		},
		"query": {
			"a URL with a query is an error",
			reviews.ReviewSettings{URL: here + "?a"}, `Admission.URL: "https://here?a" has`,
		},
		"no namespace": {
			"a Service without a namespace is an error",
			reviews.ReviewSettings{Service: "webhook"}, `Admission.Service: "webhook" is not`,
		},
		"no port": {
			"a port of a Service that is not a number is an error",
			reviews.ReviewSettings{Service: "a/b:https"}, `Admission.Service: "https" is not a port`,
		},
		"Secret": {
			"a Secret without a namespace is an error",
			reviews.ReviewSettings{Secret: "b", URL: here}, `Admission.Secret: "b" is not`,
		},
		"no hosts": {
			"a Secret without hosts for the certificate is an error", reviews.ReviewSettings{Secret: "a/b"},
			"Admission.Secret: it is not known which",
		},
		"port": {"a port out of range is an error", reviews.ReviewSettings{Port: 70000}, "Admission.Port: 70000"},
		"two certificates": {
			"a certificate directory and a self-signed certificate exclude each other",
			reviews.ReviewSettings{CertificateDir: "x", SelfSigned: true},
			"Admission.CertificateDir, Admission.SelfSigned: each",
		},
		"self-signed replicas": {
			"a self-signed certificate behind a Service is an error, as each replica has its own",
			reviews.ReviewSettings{Service: "a/b", SelfSigned: true},
			"Admission.SelfSigned: behind a Service",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(tc.settings.CheckFields()...); !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestCheckServer(t *testing.T) {
	tests := map[string]struct {
		reason           string
		settings         reviews.ReviewSettings
		program, manager string // the mistakes; empty without one
	}{
		"None": {
			"a program needs a certificate, while a manager has its own server",
			reviews.ReviewSettings{}, "no certificate to serve them with", "",
		},
		"Finalizer": {
			"the handler of FinalizerOnCreate needs a certificate, too",
			reviews.ReviewSettings{FinalizerOnCreate: true},
			"that of FinalizerOnCreate among them", "",
		},
		"Service": {"a Service is valid, as the certificate is in a Secret",
			reviews.ReviewSettings{Service: "a/b"}, "", ""},
		"SelfSigned": {"a self-signed certificate is valid", reviews.ReviewSettings{SelfSigned: true}, "", ""},
		"Insecure":   {"a server without TLS is valid", reviews.ReviewSettings{Insecure: true}, "", ""},
		"Server": {"a server of the user is valid without a certificate",
			reviews.ReviewSettings{Server: otherServer{}}, "", ""},
		"Dump": {
			"dumping the CA is an error with a server of the user",
			reviews.ReviewSettings{DumpCA: "x", Server: otherServer{}},
			"Admission.DumpCA: only the webhook server", "Admission.DumpCA: only the webhook server",
		},
		"OtherCA": {
			"a CA file is an error with the operator's own certificate",
			reviews.ReviewSettings{Service: "a/b", CAFile: "x"},
			"Admission.CAFile: the CA is that of the operator's own", "",
		},
		"NoClientCA": {
			"a missing file of the client CA is an error",
			reviews.ReviewSettings{SelfSigned: true, ClientCA: "/nowhere"},
			"Admission.ClientCA: reading", "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for program, want := range map[bool]string{true: tc.program, false: tc.manager} {
				err := tc.settings.CheckServer(program)
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, program: %t: want %q, got %v", tc.reason, program, want, err)
				}
			}
		})
	}
}

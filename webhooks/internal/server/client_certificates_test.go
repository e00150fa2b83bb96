package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
)

// TestPeerCertificates shows that only a verified client certificate reaches the handlers.
func TestPeerCertificates(t *testing.T) {
	known, stranger := clientPair(t, "known"), clientPair(t, "stranger")
	for name, tc := range map[string]struct {
		reason string
		demand tls.ClientAuthType
		pair   *tls.Certificate
		want   string
	}{
		"Verified":  {"a verified certificate is passed on", tls.VerifyClientCertIfGiven, known, "known"},
		"None":      {"a request without a certificate is served without one", tls.VerifyClientCertIfGiven, nil, ""},
		"Unchecked": {"a certificate that was not verified is left out", tls.RequestClientCert, stranger, ""},
	} {
		t.Run(name, func(t *testing.T) {
			double := &reviewer{}
			s := startTLSServer(t, double, tc.demand, known)
			if tc.pair != nil {
				presentCertificate(t, s, tc.pair)
			}
			if got := post(t, s, "/v", "{}"); got.status != 200 {
				t.Fatalf("got %d %s", got.status, got.text)
			}
			got := ""
			if peers := double.last(t).PeerCertificates; len(peers) > 0 {
				got = peers[0].Subject.CommonName
			}
			if got != tc.want {
				t.Errorf("%s: got the client %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestStrangersAreRefused(t *testing.T) {
	known, stranger := clientPair(t, "known"), clientPair(t, "stranger")
	double := &reviewer{}
	s := startTLSServer(t, double, tls.RequireAndVerifyClientCert, known)
	for _, pair := range []*tls.Certificate{stranger, {}} {
		presentCertificate(t, s, pair)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := s.Client().Do(request); err == nil {
			_ = answer.Body.Close()
			t.Error("an unknown client must not get an answer")
		}
	}
	if len(double.requests) > 0 {
		t.Error("an unknown client must not reach the reviewer")
	}
	presentCertificate(t, s, known)
	if got := post(t, s, "/v", "{}"); got.status != 200 {
		t.Errorf("the next client must be served: got %d %s", got.status, got.text)
	}
}

// startTLSServer starts a server with the given policy for client certificates.
func startTLSServer(
	t *testing.T, double *reviewer, demand tls.ClientAuthType, known *tls.Certificate,
) *httptest.Server {
	t.Helper()
	handler, err := server.New(server.Options{
		Reviewer: double, Endpoints: []server.Endpoint{{Path: "v", Handler: "v"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler)
	pool := x509.NewCertPool()
	pool.AddCert(known.Leaf)
	s.TLS = &tls.Config{ClientAuth: demand, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
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
	leaf, err := x509.ParseCertificate(data)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key, Leaf: leaf}
}

// presentCertificate makes the client send a certificate with each handshake.
func presentCertificate(t *testing.T, s *httptest.Server, pair *tls.Certificate) {
	t.Helper()
	transport, is := s.Client().Transport.(*http.Transport)
	if !is {
		t.Fatalf("the client must have an http.Transport, got %T", s.Client().Transport)
	}
	transport.CloseIdleConnections()
	transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return pair, nil
	}
}

package certificates_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

// runningSource is a running source and the bundles that it has reported.
type runningSource struct {
	certificates.Source
	cancel    context.CancelFunc
	runResult chan error

	mu          sync.Mutex
	bundle      []byte
	reportCount int
}

// run runs a source until it is stopped, or the test ends.
func run(t *testing.T, source certificates.Source, told ...func(bundle []byte)) *runningSource {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r := &runningSource{Source: source, cancel: end, runResult: make(chan error, 1)}
	go func() {
		r.runResult <- source.Run(ctx, func(bundle []byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.bundle = bundle
			r.reportCount++
			for _, tell := range told {
				tell(bundle)
			}
		})
	}()
	t.Cleanup(end)
	return r
}

// stop ends the source and returns its error.
func (r *runningSource) stop() error {
	r.cancel()
	return <-r.runResult
}

// last returns the bundle that was reported last, and how many were reported.
func (r *runningSource) last() (bundle []byte, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bundle, r.reportCount
}

// connect acts as a client that trusts the bundle: it returns the certificate of the server if it is valid for the
// host.
func connect(source certificates.Source, bundle []byte, host string) (*x509.Certificate, error) {
	used, err := source.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = used.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: time.Now()})
	return used.Leaf, err
}

func keyOf(t *testing.T, key any) []byte {
	t.Helper()
	data, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: data})
}

// issueCertificate returns a certificate of a CA and its key, in the form of a Secret.
func issueCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	source, err := certificates.SelfSignedSource("ca")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	data, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, &private.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
	return base64.StdEncoding.EncodeToString(inPEM), base64.StdEncoding.EncodeToString(keyOf(t, private))
}

package credentials_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// cluster is an API server with TLS that answers with the name of the authenticated user.
type cluster struct {
	t      *testing.T
	server *httptest.Server
	ca     []byte // the CA of the server, in PEM
	folder string

	mu    sync.Mutex
	users map[string]bool
}

func newCluster(t *testing.T, users ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, folder: t.TempDir()}
	c.setUsers(users...)
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(c.answer))
	c.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	return c
}

// setUsers sets the users that the server accepts.
func (c *cluster) setUsers(users ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users = map[string]bool{}
	for _, user := range users {
		c.users[user] = true
	}
}

func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	user := r.Header.Get("Authorization")
	if len(r.TLS.PeerCertificates) > 0 {
		user = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	c.mu.Lock()
	known := c.users[user]
	c.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = io.WriteString(w, user)
}

// file writes a file and returns its path.
func (c *cluster) file(name string, data []byte) string {
	c.t.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// certificate creates a client certificate of the user, with its key.
func (c *cluster) certificate(user string) (certificate, key []byte) {
	c.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		c.t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// proxy starts a proxy for connections to any host. It counts them.
func (c *cluster) proxy() (url string, connections func() int) {
	var mu sync.Mutex
	var count int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		count++
		mu.Unlock()
		tunnel(w, r.Host)
	}))
	c.t.Cleanup(server.Close)
	return server.URL, func() int { mu.Lock(); defer mu.Unlock(); return count }
}

// tunnel copies data in both directions.
func tunnel(w http.ResponseWriter, host string) {
	there, err := net.Dial("tcp", host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
		}()
	}
}

// connectedProgram is a client of the cluster.
type connectedProgram struct {
	client *http.Client
	config *rest.Config
	logins int
}

// connect logs in, and again whenever credentials are refused.
func connect(t *testing.T, login func() (*credentials.Info, error)) (*connectedProgram, error) {
	t.Helper()
	p := &connectedProgram{}
	made, err := credentials.Connect(t.Context(), credentials.Options{
		Login: func(context.Context) (map[string]*credentials.Info, error) {
			p.logins++
			info, err := login()
			return map[string]*credentials.Info{"login": info}, err
		},
		Prepare: func(*rest.Config) {},
	})
	if err != nil {
		return nil, err
	}
	p.config = made.Config
	p.client, err = rest.HTTPClientFor(made.Config)
	if err == nil {
		t.Cleanup(p.client.CloseIdleConnections)
	}
	return p, err
}

// user returns the user that the server authenticates.
func (p *connectedProgram) user(t *testing.T) (string, error) {
	t.Helper()
	return p.userBy(t, p.client.Transport)
}

// streamer makes connections for streams, as packages for commands in pods do.
type streamer struct{ http.RoundTripper }

// streamingUser returns the user that the server authenticates on a connection that becomes a stream.
func (p *connectedProgram) streamingUser(t *testing.T) string {
	t.Helper()
	config, err := rest.TLSConfigFor(p.config)
	if err != nil {
		t.Fatal(err)
	}
	own := &http.Transport{TLSClientConfig: config}
	t.Cleanup(own.CloseIdleConnections)
	transport, err := rest.HTTPWrappersForConfig(p.config, streamer{own})
	if err != nil {
		t.Fatal(err)
	}
	user, err := p.userBy(t, transport)
	if err != nil {
		t.Error(err)
	}
	return user
}

func (p *connectedProgram) userBy(t *testing.T, transport http.RoundTripper) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.config.Host+"/apis", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s for %q", answer.Status, data)
	}
	return string(data), err
}

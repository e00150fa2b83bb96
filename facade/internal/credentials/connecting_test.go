package credentials_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

const proxies = "HTTP_PROXY"

// TestMain sets variables that libraries read once per process.
func TestMain(m *testing.M) {
	if err := os.Setenv(proxies, "http://environment.example.org:3128"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// blockDial waits for the context or two hours and returns an error.
func blockDial(ctx context.Context, _, _ string) (net.Conn, error) {
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Hour):
	}
	return nil, errors.New("no connection")
}

// TestConnectTimeouts shows the timeouts of a connection that never comes up: the error arrives when the timeout is
// over.
func TestConnectTimeouts(t *testing.T) {
	const short, long = 5 * time.Second, time.Minute
	tests := map[string]struct {
		reason      string
		settings    credentials.Configuration
		read, watch time.Duration
	}{
		"Both": {
			"requests and watches have separate timeouts",
			credentials.Configuration{ConnectTimeout: short, WatchConnectTimeout: long}, short, long,
		},
		"OfAll": {"the timeout of requests applies to watches by default",
			credentials.Configuration{ConnectTimeout: short}, short, short},
		"OfWatches": {"a timeout of watches does not change the default of requests",
			credentials.Configuration{WatchConnectTimeout: long}, 30 * time.Second, long},
		"None": {"without a timeout, the context of the request decides",
			credentials.Configuration{ConnectTimeout: -1}, time.Hour, time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for path, want := range map[string]time.Duration{"/pods": tc.read, "/pods?watch=true": tc.watch} {
				synctest.Test(t, func(t *testing.T) {
					config := &rest.Config{
						Host: "http://10.0.0.1",
						Dial: blockDial,
					}
					tc.settings.Apply(config)
					client, err := rest.HTTPClientFor(config)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					began := time.Now()
					request, _ := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
					response, err := client.Do(request)
					if took := time.Since(began); err == nil || took != want {
						t.Errorf("%s: %s took %s, want %s; error %v", tc.reason, path, took, want, err)
					}
					if response != nil {
						_ = response.Body.Close()
					}
					time.Sleep(2 * time.Hour) // the dialer ends only now
				})
			}
		})
	}
}

// TestProxies shows that proxies of the environment need TrustEnv, while the proxy of the kubeconfig is always used.
func TestProxies(t *testing.T) {
	withoutCluster(t)
	for name, tc := range map[string]struct {
		path     string
		settings credentials.Configuration
		want     string
	}{
		"Environment": {"testdata/elsewhere.yaml", credentials.Configuration{}, "10.0.0.1:80"},
		"Trusted": {
			"testdata/elsewhere.yaml", credentials.Configuration{TrustEnv: true}, "environment.example.org:3128",
		},
		"Kubeconfig": {"testdata/proxied.yaml", credentials.Configuration{}, "own.example.org:3128"},
	} {
		t.Run(name, func(t *testing.T) {
			info, err := credentials.Login(tc.path, "")
			if err != nil {
				t.Fatal(err)
			}
			config := info.Config
			tc.settings.Apply(config)
			var dialled string
			config.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
				dialled = address
				return nil, errors.New("no connection")
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
			response, err := client.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if dialled != tc.want {
				t.Errorf("want a connection to %q, got one to %q", tc.want, dialled)
			}
		})
	}
}

// TestIdleConnectionsAreClosed shows that client-go can close idle connections of former credentials through our
// transport.
func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "secret"}
	credentials.Configuration{ConnectTimeout: time.Minute}.Apply(config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	utilnet.CloseIdleConnectionsFor(transport)
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("the connection stays open")
	}
}

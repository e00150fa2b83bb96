package ngrok_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	sdk "golang.ngrok.com/ngrok/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels/ngrok"
)

// agent is an agent of ngrok that listens on this machine.
type agent struct {
	listenErr      error
	listener       net.Listener
	isDisconnected bool
}

func (a *agent) Listen(context.Context, ...sdk.EndpointOption) (sdk.EndpointListener, error) {
	if a.listenErr != nil {
		return nil, a.listenErr
	}
	return endpoint{listener: a.listener}, nil
}

func (a *agent) Disconnect() error { a.isDisconnected = true; return nil }

// endpoint is an endpoint on a port of this machine.
type endpoint struct {
	sdk.EndpointListener // for methods that are not called
	listener             net.Listener
}

func (e endpoint) Accept() (net.Conn, error) { return e.listener.Accept() }

func (e endpoint) Addr() net.Addr { return e.listener.Addr() }

func (e endpoint) Close() error { return e.listener.Close() }

func (endpoint) URL() *url.URL { return &url.URL{Scheme: "https", Host: "databases.ngrok.app"} }

// openTunnel is an open tunnel to a server that answers with the path of the request.
type openTunnel struct {
	*agent
	reportedURL string
	stop        context.CancelFunc
	runResult   chan error
}

func open(t *testing.T, local tunnels.Local) openTunnel {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o := openTunnel{&agent{listener: listener}, "", stop, make(chan error, 1)}
	tunnel := ngrok.Tunnel{NewAgent: func(context.Context) (ngrok.Agent, error) { return o.agent, nil }}
	told := make(chan string, 1)
	go func() {
		o.runResult <- tunnel.Run(ctx, local, func(way admissionregistrationv1.WebhookClientConfig) {
			if way.CABundle != nil {
				t.Errorf("the CA of ngrok must not be in the bundle: got %q", way.CABundle)
			}
			told <- *way.URL
		})
	}()
	select {
	case o.reportedURL = <-told:
	case err := <-o.runResult:
		t.Fatal(err)
	}
	return o
}

// ask sends a request to the public end of the tunnel.
func (o openTunnel) ask(t *testing.T) (answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, "http://"+o.listener.Addr().String()+"/secret/v", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	got, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.Status + " " + string(text)
}

func TestTunnel(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	for name, tc := range map[string]struct {
		reason, url string
		bundle      []byte
		want        string
	}{
		"Plain":     {"a server without TLS is reached", plain.URL, nil, "200 OK /secret/v"},
		"Certified": {"a server with a certificate of the bundle is reached", secure.URL, bundle, "200 OK /secret/v"},
		"Stranger":  {"a server with an unknown certificate is a bad gateway", secure.URL, nil, "502 Bad Gateway "},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, address, _ := strings.Cut(tc.url, "://")
			o := open(t, tunnels.Local{Scheme: scheme, Address: address, Path: "/secret", Bundle: tc.bundle})
			if o.reportedURL != "https://databases.ngrok.app/secret" {
				t.Errorf("the reported URL is %q", o.reportedURL)
			}
			if got := o.ask(t); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			o.stop()
			if err := <-o.runResult; err != nil || !o.isDisconnected {
				t.Errorf("a stop must not be an error and must disconnect: got %v, %t", err, o.isDisconnected)
			}
			if got := o.ask(t); !strings.Contains(got, "refused") {
				t.Errorf("the tunnel must be closed: got %q", got)
			}
		})
	}
}

// TestTunnelIsClosed shows that the end of an endpoint is a temporary error, so that it is opened again.
func TestTunnelIsClosed(t *testing.T) {
	o := open(t, tunnels.Local{Scheme: "http", Address: "127.0.0.1:1"})
	defer o.stop()
	_ = o.listener.Close()
	err := <-o.runResult
	if err == nil || errors.Is(err, reconcile.TerminalError(nil)) ||
		!strings.Contains(err.Error(), "databases.ngrok.app") {
		t.Errorf("want a temporary error that names the endpoint, got %v", err)
	}
	if !o.isDisconnected {
		t.Error("the agent must be disconnected")
	}
}

// refusal is an error of the service.
type refusal string

func (r refusal) Error() string { return "refused: " + string(r) }

func (r refusal) Code() string { return string(r) }

func TestTunnelFails(t *testing.T) {
	t.Setenv("NGROK_AUTHTOKEN", "")
	refusing := func(err error) func(context.Context) (ngrok.Agent, error) {
		return func(context.Context) (ngrok.Agent, error) { return &agent{listenErr: err}, nil }
	}
	local := tunnels.Local{Scheme: "http", Address: "127.0.0.1:1"}
	for name, tc := range map[string]struct {
		reason  string
		tunnel  ngrok.Tunnel
		local   tunnels.Local
		forever bool
		want    string
	}{
		"NoToken": {"a missing token is a permanent error", ngrok.Tunnel{}, local, true, "set NGROK_AUTHTOKEN"},
		"BadToken": {"a bad token is a permanent error",
			ngrok.Tunnel{NewAgent: refusing(refusal("ERR_NGROK_105"))}, local, true, "_105"},
		"TooMany": {
			"too many sessions are a temporary error",
			ngrok.Tunnel{NewAgent: refusing(refusal("ERR_NGROK_108"))}, local, false, "_108",
		},
		"NoNetwork": {"a network error is a temporary error",
			ngrok.Tunnel{NewAgent: refusing(io.EOF)}, local, false, "EOF"},
		"BadURL": {"a URL without TLS is a permanent error",
			ngrok.Tunnel{URL: "http://a"}, local, true, `"http://a" cannot be`},
		"NoBundle": {
			"a bundle without a certificate is a temporary error", ngrok.Tunnel{NewAgent: refusing(nil)},
			tunnels.Local{Scheme: "https", Bundle: []byte("?")}, false, "there is no certificate",
		},
	} {
		err := tc.tunnel.Run(t.Context(), tc.local, func(admissionregistrationv1.WebhookClientConfig) {
			t.Errorf("%s: a URL was reported", name)
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) ||
			errors.Is(err, reconcile.TerminalError(nil)) != tc.forever {
			t.Errorf("%s: %s: got %v", name, tc.reason, err)
		}
	}
}

// The agent of the SDK implements Agent.
var _ interface{ ngrok.Agent } = sdk.Agent(nil)

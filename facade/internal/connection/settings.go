package connection

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

// DefaultConnect is that of client-go.
const DefaultConnect = 30 * time.Second

// Settings say how connections are made.
type Settings struct {
	// ConnectTimeout is how long a TCP handshake may take, WatchConnectTimeout how long if it is a watch that needs the
	// connection. Zeros are 30 seconds, and the former; negative is no limit but that of the operating system.
	ConnectTimeout, WatchConnectTimeout time.Duration
	// TrustEnv takes proxies from the environment: HTTPS_PROXY and the like. That of a kubeconfig is taken either way.
	TrustEnv bool
}

// Apply puts the settings into the configuration.
func (s Settings) Apply(config *rest.Config) {
	if !s.TrustEnv && config.Proxy == nil {
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	if s.ConnectTimeout == 0 && s.WatchConnectTimeout == 0 {
		return
	}
	next := config.Dial
	if next == nil {
		next = (&net.Dialer{KeepAlive: DefaultConnect}).DialContext
	}
	config.Dial = dialer{
		next: next, connect: cmp.Or(s.ConnectTimeout, DefaultConnect),
		watch: cmp.Or(s.WatchConnectTimeout, s.ConnectTimeout, DefaultConnect),
	}.dial
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return marking{next} })
}

// dialer makes connections within limits.
type dialer struct {
	next           func(ctx context.Context, network, address string) (net.Conn, error)
	connect, watch time.Duration
}

func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := d.connect
	if ctx.Value(watching{}) != nil {
		timeout = d.watch
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return d.next(ctx, network, address)
}

// watching is what the context of a watch's request has. The transport hands it on to the dialer.
type watching struct{}

// marking is a transport that lets the dialer know what a connection is for.
type marking struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (m marking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		r = r.WithContext(context.WithValue(r.Context(), watching{}, true))
	}
	return m.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below, to close its idle connections.
func (m marking) WrappedRoundTripper() http.RoundTripper { return m.next }

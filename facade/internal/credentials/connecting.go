package credentials

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

// DefaultConnectTimeout is the connect timeout of client-go.
const DefaultConnectTimeout = 30 * time.Second

// Configuration configure how connections are made.
type Configuration struct {
	// ConnectTimeout limits the TCP handshake, and WatchConnectTimeout limits it if a watch needs the connection. The
	// default of the former is 30 seconds, that of the latter is the former. A negative value means that only the
	// operating system sets a limit.
	ConnectTimeout, WatchConnectTimeout time.Duration
	// TrustEnv uses the proxies of the environment, such as HTTPS_PROXY. The proxy of a kubeconfig is used in any case.
	TrustEnv bool
}

// Apply sets the proxy, the dialer and the transport of the configuration.
func (s Configuration) Apply(config *rest.Config) {
	// A nil function would make the default transport use the environment.
	if !s.TrustEnv && config.Proxy == nil {
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	// Client-go's defaults remain.
	if s.ConnectTimeout == 0 && s.WatchConnectTimeout == 0 {
		return
	}
	next := config.Dial
	if next == nil {
		next = (&net.Dialer{KeepAlive: DefaultConnectTimeout}).DialContext
	}
	config.Dial = dialer{
		next: next, connectTimeout: cmp.Or(s.ConnectTimeout, DefaultConnectTimeout),
		watchConnectTimeout: cmp.Or(s.WatchConnectTimeout, s.ConnectTimeout, DefaultConnectTimeout),
	}.dialWithin
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchMarker{next} })
}

// dialer opens connections within the time limits.
type dialer struct {
	next                                func(ctx context.Context, network, address string) (net.Conn, error)
	connectTimeout, watchConnectTimeout time.Duration
}

// dialWithin opens a connection. The context shows whether a watch needs it.
func (d dialer) dialWithin(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := d.connectTimeout
	if ctx.Value(watchKey{}) != nil {
		timeout = d.watchConnectTimeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return d.next(ctx, network, address)
}

// watchKey is the context key of watch requests. The transport passes the context of a request to the dialer.
type watchKey struct{}

// watchMarker marks the context of watch requests for the dialer, which does not get the request itself.
type watchMarker struct{ next http.RoundTripper }

// RoundTrip sends the request, with a mark if it is a watch.
func (m watchMarker) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		r = r.WithContext(context.WithValue(r.Context(), watchKey{}, true))
	}
	return m.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the inner transport, to close its idle connections.
func (m watchMarker) WrappedRoundTripper() http.RoundTripper { return m.next }

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// The defaults of [RequestLimits].
const (
	// DefaultRequestTimeout is long enough for the slowest requests, which are lists. Kopf: networking.request_timeout.
	DefaultRequestTimeout = 5 * time.Minute
	// DefaultInactivityTimeout is a little longer than the interval between the bookmarks of an API server, which is
	// about a minute. Kopf: watching.inactivity_timeout.
	DefaultInactivityTimeout = 70 * time.Second
	// DefaultReconnectBackoff is short, because it delays events. Kopf: watching.reconnect_backoff.
	DefaultReconnectBackoff = 100 * time.Millisecond
)

// RequestLimits limits the time of requests and watches. Zero values mean the defaults. Negative values remove the
// limit or the pause.
type RequestLimits struct {
	// RequestTimeout limits all requests except watches, including the time to read the response; zero means
	// DefaultRequestTimeout.
	RequestTimeout time.Duration
	WatchLimits
}

// WatchLimits limits the time of watches.
type WatchLimits struct {
	// ServerTimeout is how long the API server keeps a watch before it ends it, rounded up to seconds. Zero keeps the
	// value of the client: for an informer, a random time between 5 and 10 minutes, so that not all watches end at
	// once. Negative leaves the choice to the server. Kopf: watching.server_timeout.
	ServerTimeout time.Duration
	// ClientTimeout limits watches on this side, including the request; zero means no limit. Kopf:
	// watching.client_timeout.
	ClientTimeout time.Duration
	// InactivityTimeout is the time without any event or bookmark after which a watch is considered dead. It is
	// restarted from the last seen resource version. Zero is 70 seconds. Kopf: watching.inactivity_timeout.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the least time between the end or failure of a watch and the next watch of the same path;
	// zero is a tenth of a second. After errors, the pause of an informer grows up to a minute, whatever this value is.
	// Kopf: watching.reconnect_backoff.
	ReconnectBackoff time.Duration
}

// limitedTransport sends requests within limits. Its limits are effective: zero means none.
type limitedTransport struct {
	next   RoundTripFunc
	limits RequestLimits
	// watchEnds holds the recent ends of watches, for the pause; ways tracks dead connections.
	watchEnds   watchEnds
	connections connections
}

// WrapRoundTrip wraps next with the limits. Each call has its own memory of watches and connections.
func (l RequestLimits) WrapRoundTrip(next RoundTripFunc) RoundTripFunc {
	t := &limitedTransport{
		next: next, watchEnds: watchEnds{byPath: map[string]time.Time{}},
		connections: connections{lastReceived: map[net.Conn]time.Time{}},
	}
	l.RequestTimeout = effectiveLimit(l.RequestTimeout, DefaultRequestTimeout)
	l.ClientTimeout = effectiveLimit(l.ClientTimeout, 0)
	l.InactivityTimeout = effectiveLimit(l.InactivityTimeout, DefaultInactivityTimeout)
	l.ReconnectBackoff = effectiveLimit(l.ReconnectBackoff, DefaultReconnectBackoff)
	t.limits = l
	return t.sendWithinLimits
}

// effectiveLimit replaces a zero limit by its default, and a negative one by zero, which means no limit.
func effectiveLimit(limit, zero time.Duration) time.Duration {
	if limit == 0 {
		return zero
	}
	return max(0, limit)
}

// sendWithinLimits sends the request. The limit applies until the body of the response is closed.
func (t *limitedTransport) sendWithinLimits(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		return t.sendWatch(r)
	}
	// Without a limit, only the wait after a refusal is checked.
	if t.limits.RequestTimeout == 0 {
		response, err := t.next(r)
		if err != nil {
			return nil, err
		}
		return withoutVainWait(r, response), nil
	}
	// A timeout of the context also covers the body, which is read after this function has returned.
	ctx, cancel := context.WithTimeout(r.Context(), t.limits.RequestTimeout)
	traced, way := t.connections.traceConnection(ctx)
	response, err := t.next(r.WithContext(traced))
	if err != nil {
		defer cancel()
		return nil, t.explainTimeout(r.Context(), ctx, err)
	}
	// The connection is alive: only silent connections are dropped.
	way.noteReceived()
	response.Body = &answer{source: response.Body, explainError: func(err error) error {
		return t.explainTimeout(r.Context(), ctx, err)
	}, release: cancel}
	return withoutVainWait(r, response), nil
}

// explainTimeout returns an error that names the limit, if the limit and not the caller ended the request.
func (t *limitedTransport) explainTimeout(asked, limited context.Context, err error) error {
	// If the caller's context has ended as well, the caller was first.
	if asked.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("the API server did not answer within %s: %w", t.limits.RequestTimeout, limited.Err())
	}
	return err
}

// answer is the body of a response to a request with a limit.
type answer struct {
	source       io.ReadCloser
	explainError func(error) error
	release      context.CancelFunc
}

// Read reads from the body, and explains an error that the limit caused.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.source.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.explainError(err)
	}
	return n, err
}

// Close closes the body, and releases the timer of the limit.
func (a *answer) Close() error {
	defer a.release()
	return a.source.Close()
}

// connectionRetention is the time without traffic after which a connection is no longer tracked. Most connections are
// closed before that.
const connectionRetention = time.Hour

// connections records when something was received on each connection, for any request. HTTP/2 requests share a
// connection: without the record, each new attempt would be sent on the same dead connection.
type connections struct {
	mu           sync.Mutex
	lastReceived map[net.Conn]time.Time
}

// requestConnection is the connection of one request. It is empty until the request got one, and stays empty with
// transports that do not report connections.
type requestConnection struct {
	connections *connections
	conn        atomic.Pointer[net.Conn]
}

// traceConnection returns a context that records which connection the request gets.
func (c *connections) traceConnection(ctx context.Context) (context.Context, *requestConnection) {
	u := &requestConnection{connections: c}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { u.conn.Store(&got.Conn) },
	}), u
}

// noteReceived records that something was received on the connection, and stops tracking idle ones.
func (u *requestConnection) noteReceived() {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	u.connections.mu.Lock()
	defer u.connections.mu.Unlock()
	maps.DeleteFunc(u.connections.lastReceived,
		func(_ net.Conn, at time.Time) bool { return time.Since(at) > connectionRetention })
	u.connections.lastReceived[*conn] = time.Now()
}

// closeIfSilent closes the connection of a request if nothing was received on it for the given time. The next attempt
// then opens another connection. All other requests on the connection fail, as they would fail later anyway.
func (u *requestConnection) closeIfSilent(ctx context.Context, silence time.Duration) {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	// Another request may have received something on the same connection: it is then alive.
	u.connections.mu.Lock()
	at, known := u.connections.lastReceived[*conn]
	if dead := !known || time.Since(at) >= silence; !dead {
		u.connections.mu.Unlock()
		return
	}
	delete(u.connections.lastReceived, *conn)
	u.connections.mu.Unlock()
	// Close without the lock, as it may block.
	_ = (*conn).Close()
	logf.FromContext(ctx).V(1).Info("Closed a connection to the API server: it takes requests, and answers none",
		"silent", silence.String())
}

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
)

// The defaults of [RequestLimits].
const (
	// DefaultRequest is long enough for the slowest requests, which are lists. Kopf: networking.request_timeout.
	DefaultRequest = 5 * time.Minute
	// DefaultInactivity is a little longer than the interval between the bookmarks of an API server, which is about a
	// minute. Kopf: watching.inactivity_timeout.
	DefaultInactivity = 70 * time.Second
	// DefaultPause is short, because it delays events. Kopf: watching.reconnect_backoff.
	DefaultPause = 100 * time.Millisecond
)

// RequestLimits limits the time of requests and watches. Zero values mean the defaults. Negative values remove the
// limit or the pause.
type RequestLimits struct {
	// Request limits all requests except watches, including the time to read the response; zero means DefaultRequest.
	Request time.Duration
	// Server is the duration that watches request from the API server, in whole seconds, rounded up. Zero keeps the
	// value of the client, which is 5 to 10 minutes for an informer; negative leaves it to the server. Kopf:
	// watching.server_timeout.
	Server time.Duration
	// Client limits watches on this side, including the request; zero means no limit. Kopf: watching.client_timeout.
	Client time.Duration
	// Inactivity limits the time in which a watch sends nothing, not even a bookmark; zero means DefaultInactivity.
	Inactivity time.Duration
	// Pause is the least time between the end or failure of a watch and the next watch of the same path; zero means
	// DefaultPause.
	Pause time.Duration
}

// timed sends requests within limits. Its limits are effective: zero means none.
type timed struct {
	next   RoundTripFunc
	limits RequestLimits
	// ends holds the recent ends of watches, for the pause; ways tracks dead connections.
	ends ends
	ways connections
}

// WrapRoundTrip wraps next with the limits. Each call has its own memory of watches and connections.
func (l RequestLimits) WrapRoundTrip(next RoundTripFunc) RoundTripFunc {
	t := &timed{
		next: next, ends: ends{at: map[string]time.Time{}}, ways: connections{heard: map[net.Conn]time.Time{}},
		limits: RequestLimits{
			Request: effectiveLimit(l.Request, DefaultRequest), Server: l.Server, Client: effectiveLimit(l.Client, 0),
			Inactivity: effectiveLimit(l.Inactivity, DefaultInactivity), Pause: effectiveLimit(l.Pause, DefaultPause),
		},
	}
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
func (t *timed) sendWithinLimits(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		return t.sendWatch(r)
	}
	// Without a limit, only the wait after a refusal is checked.
	if t.limits.Request == 0 {
		response, err := t.next(r)
		if err != nil {
			return nil, err
		}
		return withoutVainWait(r, response), nil
	}
	// A timeout of the context also covers the body, which is read after this function has returned.
	ctx, cancel := context.WithTimeout(r.Context(), t.limits.Request)
	traced, way := t.ways.traceConnection(ctx)
	response, err := t.next(r.WithContext(traced))
	if err != nil {
		defer cancel()
		return nil, t.explainTimeout(r.Context(), ctx, err)
	}
	// The connection is alive: only silent connections are dropped.
	way.noteReceived()
	response.Body = &answer{source: response.Body, explain: func(err error) error {
		return t.explainTimeout(r.Context(), ctx, err)
	}, release: cancel}
	return withoutVainWait(r, response), nil
}

// explainTimeout returns an error that names the limit, if the limit and not the caller ended the request.
func (t *timed) explainTimeout(asked, limited context.Context, err error) error {
	// If the caller's context has ended as well, the caller was first.
	if asked.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("the API server did not answer within %s: %w", t.limits.Request, limited.Err())
	}
	return err
}

// answer is the body of a response to a request with a limit.
type answer struct {
	source  io.ReadCloser
	explain func(error) error
	release context.CancelFunc
}

// Read reads from the body, and explains an error that the limit caused.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.source.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.explain(err)
	}
	return n, err
}

// Close closes the body, and releases the timer of the limit.
func (a *answer) Close() error {
	defer a.release()
	return a.source.Close()
}

// forgetting is the time without traffic after which a connection is no longer tracked. Most connections are closed by
// then.
const forgetting = time.Hour

// connections records when something was received on each connection, for any request. HTTP/2 requests share a
// connection: without the record, each new attempt would be sent on the same dead connection.
type connections struct {
	mu    sync.Mutex
	heard map[net.Conn]time.Time
}

// used is the connection of one request. It is empty until the request got one, and stays empty with transports that do
// not report connections.
type used struct {
	of   *connections
	conn atomic.Pointer[net.Conn]
}

// traceConnection returns a context that records which connection the request gets.
func (c *connections) traceConnection(ctx context.Context) (context.Context, *used) {
	u := &used{of: c}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { u.conn.Store(&got.Conn) },
	}), u
}

// noteReceived records that something was received on the connection, and stops tracking idle ones.
func (u *used) noteReceived() {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	maps.DeleteFunc(u.of.heard, func(_ net.Conn, at time.Time) bool { return time.Since(at) > forgetting })
	u.of.heard[*conn] = time.Now()
}

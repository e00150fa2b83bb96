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

// The defaults of [Limits].
const (
	// DefaultRequest is for the slowest requests, which are lists. Kopf: networking.request_timeout.
	DefaultRequest = 5 * time.Minute
	// DefaultInactivity is a little longer than the time between the bookmarks of an API server. Kopf:
	// watching.inactivity_timeout.
	DefaultInactivity = 70 * time.Second
	// DefaultPause is short, as it delays events. Kopf: watching.reconnect_backoff.
	DefaultPause = 100 * time.Millisecond
)

// Limits say how long requests and watches may take. Zeros are the defaults. Negative values remove the limit or
// the pause.
type Limits struct {
	// Request is how long a request may take that is no watch, its answer included; zero is DefaultRequest.
	Request time.Duration
	// Server is how long a watch is requested from the API server, in whole seconds, rounded up. Zero leaves what the
	// client asks for, 5 to 10 minutes for an informer; negative leaves it to the server. Kopf:
	// watching.server_timeout.
	Server time.Duration
	// Client is how long a watch may take, its request included; zero is no limit. Kopf: watching.client_timeout.
	Client time.Duration
	// Inactivity is how long a watch may have nothing to tell, not even a bookmark; zero is DefaultInactivity.
	Inactivity time.Duration
	// Pause is the least time between the end of a watch, or its failure, and the next watch of the same; zero is
	// DefaultPause.
	Pause time.Duration
}

// timed sends requests within limits.
type timed struct {
	next   RoundTripFunc
	limits Limits
	ends   ends
	ways   connections
}

// Around sends requests within the limits.
func (l Limits) Around(next RoundTripFunc) RoundTripFunc {
	t := &timed{
		next: next, ends: ends{at: map[string]time.Time{}}, ways: connections{heard: map[net.Conn]time.Time{}},
		limits: Limits{
			Request: effective(l.Request, DefaultRequest), Server: l.Server, Client: effective(l.Client, 0),
			Inactivity: effective(l.Inactivity, DefaultInactivity), Pause: effective(l.Pause, DefaultPause),
		},
	}
	return t.send
}

// effective is a limit where zero is none.
func effective(limit, zero time.Duration) time.Duration {
	if limit == 0 {
		return zero
	}
	return max(0, limit)
}

// send sends the request. The limit goes on until the body of the answer is closed.
func (t *timed) send(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		return t.watch(r)
	}
	if t.limits.Request == 0 {
		response, err := t.next(r)
		if err != nil {
			return nil, err
		}
		return withoutVainWait(r, response), nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.limits.Request)
	traced, way := t.ways.trace(ctx)
	response, err := t.next(r.WithContext(traced))
	if err != nil {
		defer cancel()
		return nil, t.explained(r.Context(), ctx, err)
	}
	way.hear()
	response.Body = &answer{source: response.Body, explain: func(err error) error {
		return t.explained(r.Context(), ctx, err)
	}, release: cancel}
	return withoutVainWait(r, response), nil
}

// explained names the limit if it was the reason of the error.
func (t *timed) explained(asked, limited context.Context, err error) error {
	if asked.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("the API server did not answer within %s: %w", t.limits.Request, limited.Err())
	}
	return err
}

// answer is the body of an answer to a request with a limit.
type answer struct {
	source  io.ReadCloser
	explain func(error) error
	release context.CancelFunc
}

// Read is that of the body.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.source.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.explain(err)
	}
	return n, err
}

// Close ends the limit, too.
func (a *answer) Close() error {
	defer a.release()
	return a.source.Close()
}

// forgetting is after what time without any word a connection is forgotten; most of those are closed by then.
const forgetting = time.Hour

// connections know when something was heard by each of them, of whatever request. Requests of HTTP/2 share connections:
// one by which nothing comes any more would get each attempt anew.
type connections struct {
	mu    sync.Mutex
	heard map[net.Conn]time.Time
}

// used is the connection of one request; empty until it has one. Transports that have no connections leave it so.
type used struct {
	of   *connections
	conn atomic.Pointer[net.Conn]
}

// trace finds out which connection the request gets.
func (c *connections) trace(ctx context.Context) (context.Context, *used) {
	u := &used{of: c}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { u.conn.Store(&got.Conn) },
	}), u
}

// hear notes that something was heard.
func (u *used) hear() {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	maps.DeleteFunc(u.of.heard, func(_ net.Conn, at time.Time) bool { return time.Since(at) > forgetting })
	u.of.heard[*conn] = time.Now()
}

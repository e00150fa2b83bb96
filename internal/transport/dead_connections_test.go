package transport_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// sharedConn is a connection that all requests use.
type sharedConn struct {
	net.Conn

	next http.RoundTripper

	mu     sync.Mutex
	closed time.Time
}

func (s *sharedConn) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = time.Now()
	return nil
}

// closedAfter returns the time until the connection was closed, or zero if it was not.
func (s *sharedConn) closedAfter(began time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.IsZero() {
		return 0
	}
	return s.closed.Sub(began)
}

func (s *sharedConn) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: s})
	return s.next.RoundTrip(r)
}

// TestDeadConnections shows when a connection without signs of life is closed.
func TestDeadConnections(t *testing.T) {
	const minute = time.Minute
	pods := func(next http.RoundTripper) sending { // a server that does not answer requests for nodes
		return func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "nodes") {
				return neverAnswer(r)
			}
			return next.RoundTrip(r)
		}
	}
	tests := map[string]struct {
		reason string
		server http.RoundTripper
		later  time.Duration // until the second watch
		closed time.Duration
	}{
		"NothingComes": {"a connection without any answer is closed", pods(sending(neverAnswer)), 0, minute},
		"SilentLong": {"a connection is closed if its other watch is silent, too", pods(&periodicServer{}), 0,
			minute},
		"EndedBySilence": {
			"the timeout of another watch is not a sign of life", pods(&periodicServer{}), minute / 2,
			minute + minute/2,
		},
		"OthersGoOn": {"a connection with events of another watch stays open", pods(&periodicServer{
			interval: 20 * time.Second, byteCount: 9,
		}), 0, 0},
		"OnlyOneSilent": {"a silent watch that was answered does not close the connection",
			sending(func(r *http.Request) (*http.Response, error) {
				return (&periodicServer{}).RoundTrip(r)
			}), 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way, began := &sharedConn{next: tc.server}, time.Now()
				bounded := withLimits(way, ofWatches(transport.WatchLimits{InactivityTimeout: minute}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _, _ = readResponse(ctx, t, bounded, watchURL) }()
				time.Sleep(tc.later)
				_, _ = readResponse(ctx, t, bounded, strings.Replace(watchURL, "pods", "nodes", 1))
				synctest.Wait()
				if closed := way.closedAfter(began); closed != tc.closed {
					t.Errorf("%s: closed after %s, want %s", tc.reason, closed, tc.closed)
				}
			})
		})
	}
}

// TestConnectionsAreKnownByThemselves shows that signs of life are tracked for each connection separately.
func TestConnectionsAreKnownByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		one := &sharedConn{next: sending(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "nodes") {
				return neverAnswer(r)
			}
			return (&periodicServer{interval: 25 * time.Second, byteCount: 9}).RoundTrip(r)
		})}
		other := &sharedConn{next: &periodicServer{}}
		way := withLimits(sending(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "jobs") {
				return other.RoundTrip(r)
			}
			return one.RoundTrip(r)
		}), ofWatches(transport.WatchLimits{InactivityTimeout: time.Minute}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, kind := range []string{"pods", "nodes"} {
			go func() { _, _ = readResponse(ctx, t, way, strings.Replace(watchURL, "pods", kind, 1)) }()
		}
		time.Sleep(55 * time.Second)
		go func() { _, _ = readResponse(ctx, t, way, strings.Replace(watchURL, "pods", "jobs", 1)) }()
		time.Sleep(time.Minute / 2)
		synctest.Wait()
		if closed := one.closedAfter(began); closed != 0 {
			t.Errorf("closed after %s, although an event of the pods arrived ten seconds before", closed)
		}
		cancel()
		synctest.Wait()
	})
}

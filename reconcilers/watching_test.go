package reconcilers_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// watches records the times and the requested timeouts of watches of config maps.
type watches struct {
	mu       sync.Mutex
	requests []string
}

func (w *watches) connect(server *memapi.Server) *memapi.Connection {
	began := time.Now()
	return interceptRequests(server, func(_ context.Context, r memapi.Request) int {
		if r.Verb == "watch" && r.Resource.Plural == "configmaps" {
			w.mu.Lock()
			defer w.mu.Unlock()
			at := time.Since(began).Round(time.Second)
			w.requests = append(w.requests, at.String()+" for "+r.Query.Get("timeoutSeconds")+"s")
		}
		return 0
	})
}

// TestWatching shows the effects of the settings of watches. The server sends a bookmark every minute.
func TestWatching(t *testing.T) {
	tests := map[string]struct {
		reason string
		own    reconcilers.Watching
		within time.Duration
		want   []string
	}{
		"ServerTimeout": {
			"a watch is renewed after the server timeout", reconcilers.Watching{ServerTimeout: time.Minute},
			150 * time.Second,
			[]string{"0s for 60s", "1m0s for 60s", "2m0s for 60s"},
		},
		"ServerDecides": {
			"with a negative server timeout, no timeout is requested", reconcilers.Watching{ServerTimeout: -1},
			time.Hour, []string{"0s for s"},
		},
		"ReconnectBackoff": {
			"a watch is renewed after the reconnect backoff",
			reconcilers.Watching{ServerTimeout: time.Minute, ReconnectBackoff: 20 * time.Second}, 3 * time.Minute,
			[]string{"0s for 60s", "1m20s for 60s", "2m40s for 60s"},
		},
		"ClientTimeout": {
			"a watch is renewed after the client timeout",
			reconcilers.Watching{ServerTimeout: time.Hour, ClientTimeout: 100 * time.Second},
			4 * time.Minute, []string{"0s for 3600s", "1m40s for 3600s", "3m20s for 3600s"},
		},
		"InactivityTimeout": {
			"a watch without events or bookmarks is renewed after the inactivity timeout",
			reconcilers.Watching{ServerTimeout: time.Hour, InactivityTimeout: 40 * time.Second}, 100 * time.Second,
			[]string{"0s for 3600s", "40s for 3600s", "1m20s for 3600s"},
		},
		"Bookmarks": {
			"by default, bookmarks keep a watch open", reconcilers.Watching{ServerTimeout: time.Hour}, 59 * time.Minute,
			[]string{"0s for 3600s"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watches{}
				stop := operateAll(t, w.connect(memapi.New()), reconcilers.Options{Watching: tc.own},
					registrationFor(t, "configmaps", &handlers.Handler{ID: "c", Reason: cause.Create, Call: succeed}))
				time.Sleep(tc.within)
				stop()
				if d := cmp.Diff(tc.want, w.requests); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestWatchesThatAreDead shows that a watch on a dead connection is renewed, and that its missed events are handled.
func TestWatchesThatAreDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		dead, calls := &mutableTransport{RoundTripper: server}, atomic.Int64{}
		stop := operateAll(t, dead, reconcilers.Options{},
			registrationFor(t, "configmaps", counting("c", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Second)
		dead.muteWatches()
		newDirectClient(t, server).create("ConfigMap", "one")
		time.Sleep(time.Minute)
		if calls.Load() != 0 {
			t.Fatal("the dead connection must not deliver events")
		}
		time.Sleep(11 * time.Second)
		if calls.Load() != 1 {
			t.Errorf("the object was created 71 seconds ago, and its handler was called %d times, want 1", calls.Load())
		}
	})
}

// mutableTransport is a connection whose open watches can be made silent.
type mutableTransport struct {
	http.RoundTripper
	deathCount atomic.Int64 // the number of deaths
}

func (d *mutableTransport) muteWatches() { d.deathCount.Add(1) }

func (d *mutableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = &mutableBody{transport: d, initialDeathCount: d.deathCount.Load(), ctx: r.Context(),
			source: response.Body}
	}
	return response, err
}

// mutableBody is the body of a watch that is silent after its death.
type mutableBody struct {
	transport         *mutableTransport
	initialDeathCount int64
	ctx               context.Context // of the request
	source            io.ReadCloser
}

func (m *mutableBody) Read(p []byte) (int, error) {
	n, err := m.source.Read(p)
	if m.transport.deathCount.Load() == m.initialDeathCount {
		return n, err
	}
	<-m.ctx.Done()
	return 0, m.ctx.Err()
}

func (m *mutableBody) Close() error { return m.source.Close() }

func TestRequestsThatHang(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const served = 36 * time.Hour
	tests := map[string]struct {
		reason string
		verb   string
		own    time.Duration
		hung   time.Duration
		again  []time.Duration // the delays between attempts
	}{
		"List":       {"by default, a list may take five minutes", "list", 0, 5 * time.Minute, nil},
		"ListSooner": {"the request timeout limits a list, too", "list", 20 * time.Second, 20 * time.Second, nil},
		// Deviation D-request-timeout.
		"Write": {"by default, a write may take ten seconds", "patch", 0, 10 * time.Second, nil},
		"WriteLater": {"the request timeout replaces the default of a write", "patch", 40 * time.Second,
			40 * time.Second, nil},
		"WriteAnyTime": {"a negative request timeout disables the limit", "patch", -1, served, nil},
		"WriteAgain": {
			"each attempt of a write has the whole request timeout", "patch", 20 * time.Second, 20 * time.Second,
			[]time.Duration{time.Second},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, calls := memapi.New(), atomic.Int64{}
				hung := atomic.Int64{}
				connection := interceptRequests(server, func(ctx context.Context, r memapi.Request) int {
					switch {
					case r.Resource.Plural != "configmaps":
					case tc.verb == "list" && r.Query.Get("sendInitialEvents") != "":
						return http.StatusUnprocessableEntity // an old server does not support streams
					case r.Verb == tc.verb && hung.Load() == 0:
						began := time.Now()
						select {
						case <-ctx.Done():
						case <-time.After(served):
						}
						hung.Store(int64(time.Since(began)))
					}
					return 0
				})
				newDirectClient(t, server).create("ConfigMap", "one")
				stop := operateAll(t, connection, reconcilers.Options{RequestTimeout: tc.own, APIBackoffs: tc.again},
					registrationFor(t, "configmaps", counting("c", cause.Create, &calls)))
				defer stop()
				time.Sleep(tc.hung + time.Minute)
				if took := time.Duration(hung.Load()); took != tc.hung || calls.Load() != 1 {
					t.Errorf("%s: a request hung for %s, want %s; %d calls", tc.reason, took, tc.hung, calls.Load())
				}
			})
		})
	}
}

// TestDiscoveryThatHangs shows that discovery has a timeout, because nothing is served before it ends.
func TestDiscoveryThatHangs(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			server, calls, hung := memapi.New(), atomic.Int64{}, atomic.Int64{}
			connection := hanging{server, func(r *http.Request) bool {
				return strings.HasSuffix(r.URL.Path, "/api/v1") && hung.Load() == 0
			}, &hung}
			newDirectClient(t, server).create("ConfigMap", "one")
			stop := operateAll(t, connection, reconcilers.Options{RequestTimeout: timeout},
				registrationFor(t, "configmaps", counting("c", cause.Create, &calls)))
			defer stop()
			time.Sleep(2 * time.Minute)
			if took := time.Duration(hung.Load()); took != want || calls.Load() != 1 {
				t.Errorf("timeout %s: discovery hung for %s, want %s; %d calls", timeout, took, want, calls.Load())
			}
		})
	}
}

// hanging is a connection on which some requests get no answer. It records how long the client waited.
type hanging struct {
	http.RoundTripper
	shouldHang func(*http.Request) bool
	waitTime   *atomic.Int64
}

func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if !h.shouldHang(r) {
		return h.RoundTripper.RoundTrip(r)
	}
	began := time.Now()
	<-r.Context().Done()
	h.waitTime.Store(int64(time.Since(began)))
	return nil, r.Context().Err()
}

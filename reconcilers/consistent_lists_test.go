package reconcilers_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// listRecorder is a connection that records how the objects of a resource are listed: as a stream or as a list.
type listRecorder struct {
	server   *memapi.Server
	streamed bool // the API server supports streams

	mu       sync.Mutex
	requests []string
}

func (l *listRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if !strings.HasSuffix(r.URL.Path, "/configmaps") {
		return l.server.RoundTrip(r)
	}
	way := "list"
	switch {
	case query.Get("sendInitialEvents") == "true":
		way = "stream"
	case query.Get("watch") != "":
		return l.server.RoundTrip(r)
	}
	l.mu.Lock()
	l.requests = append(l.requests, way+" of "+query.Get("resourceVersionMatch")+query.Get("resourceVersion"))
	l.mu.Unlock()
	if way == "stream" && !l.streamed {
		return &http.Response{
			StatusCode: http.StatusUnprocessableEntity, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,` +
				`"reason":"Invalid","message":"sendInitialEvents is forbidden for watch"}`)),
		}, nil
	}
	return l.server.RoundTrip(r)
}

func (l *listRecorder) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.requests
	l.requests = nil
	return seen
}

// TestListsAreConsistent shows that no list requests an old version, neither at the start nor after a pause: the cache
// of an API server can be older than the writes of another operator.
func TestListsAreConsistent(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		streamed bool
		want     []string
	}{
		"Streams": {"a stream without a version begins with the present state", true,
			[]string{"stream of NotOlderThan"}},
		"Lists": {"an old API server does not support streams, so objects are listed", false,
			[]string{"stream of NotOlderThan", "list of "}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connection := &listRecorder{server: memapi.New(), streamed: tc.streamed}
				p, gate := newDirectClient(t, connection.server), &reconcilers.Gate{}
				p.create("ConfigMap", "c")
				seen := &journal{startTime: time.Now()}
				h := &handlers.Handler{ID: "e", Family: handlers.Watching, Call: recordingFunc(seen)}
				stop := operateAll(t, connection, reconcilers.Options{Gate: gate}, registrationFor(t, "configmaps", h))
				defer stop()
				time.Sleep(5 * time.Second)
				if got := connection.take(); !slices.Equal(got, tc.want) {
					t.Errorf("%s: at the start: %q, want %q", tc.reason, got, tc.want)
				}
				gate.Set(true)
				time.Sleep(time.Hour)
				p.create("ConfigMap", "d")
				time.Sleep(time.Hour)
				if got := connection.take(); len(got) != 0 {
					t.Errorf("%s: in the pause: %q", tc.reason, got)
				}
				gate.Set(false)
				time.Sleep(5 * time.Second)
				if got := connection.take(); !slices.Equal(got, tc.want) {
					t.Errorf("%s: after the pause: %q, want %q", tc.reason, got, tc.want)
				}
			})
		})
	}
}

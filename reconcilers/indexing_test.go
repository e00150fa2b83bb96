package reconcilers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// held is a connection on which the lists and watches of one resource take a while, or are forbidden.
type held struct {
	http.RoundTripper
	plural    string
	pause     time.Duration
	forbidden bool
}

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+h.plural) && r.Method == http.MethodGet {
		if h.forbidden {
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r,
			}, nil
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(h.pause):
		}
	}
	return h.RoundTripper.RoundTrip(r)
}

// byName is an index of names.
func byName() (*indexes.Index, *handlers.Handler) {
	index := indexes.New()
	return index, &handlers.Handler{ID: "by-name", Family: handlers.Indexing, Index: &handlers.Index{
		Into: index, Call: func(_ context.Context, call *handlers.Call) (map[any]any, bool, error) {
			return map[any]any{(&unstructured.Unstructured{Object: call.Object}).GetName(): true}, false, nil
		},
	}}
}

func TestHandlersWaitForIndices(t *testing.T) {
	tests := map[string]struct {
		reason string
		held   held
		family handlers.Family
		want   string // what the handler finds in the index of another kind, and when
	}{
		"Slow": {
			"no handler is called before the listing is through", held{pause: time.Minute}, handlers.Changing,
			"1m0s: 20 secrets",
		},
		"Events": {"nor one of events", held{pause: time.Minute}, handlers.Watching, "1m0s: 20 secrets"},
		"Timers": {"nor a timer", held{pause: time.Minute}, handlers.Spawning, "1m0s: 20 secrets"},
		"Forbidden": {
			"what cannot be listed is not waited for", held{forbidden: true}, handlers.Changing, "0s: 0 secrets",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				p := newPeople(t, server)
				for n := range 20 {
					p.create("Secret", fmt.Sprint("s", n))
				}
				p.create("ConfigMap", "c")
				index, filling := byName()
				began := time.Now()
				seen := make(chan string, 100)
				h := &handlers.Handler{ID: "h", Family: tc.family, Call: func(context.Context, *handlers.Call) error {
					seen <- fmt.Sprintf("%s: %d secrets", time.Since(began).Round(10*time.Second), index.Len())
					return nil
				}}
				if tc.family == handlers.Changing {
					h.Reason = cause.Create
				}
				if tc.family == handlers.Spawning {
					h.Background = &handlers.Background{}
				}
				tc.held.RoundTripper, tc.held.plural = server, "secrets"
				stop := operateAll(t, tc.held, reconcilers.Options{}, to(t, "configmaps", h), to(t, "secrets", filling))
				time.Sleep(5 * time.Minute)
				stop()
				close(seen)
				var got []string
				for one := range seen {
					got = append(got, one)
				}
				if len(got) == 0 || got[0] != tc.want {
					t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
				}
			})
		})
	}
}

// What goes while nobody looks is not found any more when somebody looks again.
func TestIndicesAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		for n := range 3 {
			p.create("Secret", fmt.Sprint("s", n))
		}
		index, filling := byName()
		gate := &reconcilers.Gate{}
		var calls atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, to(t, "secrets", filling),
			to(t, "secrets", counting("h", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		p.remove("Secret", "s1")
		p.create("Secret", "s3")
		time.Sleep(time.Minute)
		if got := len(index.Keys()); got != 3 || calls.Load() != 3 {
			t.Errorf("a paused operator looks at nothing: %d keys, %d calls", got, calls.Load())
		}
		gate.Set(false)
		time.Sleep(10 * time.Second)
		var found []string
		for _, key := range index.Keys() {
			found = append(found, key.(string))
		}
		slices.Sort(found)
		if strings.Join(found, " ") != "s0 s2 s3" || calls.Load() != 4 {
			t.Errorf("found %v, %d calls", found, calls.Load())
		}
	})
}

package reconcilers_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// byName returns an index of names, and the handler that fills it.
func byName() (*indexes.ObjectIndex, *handlers.Handler) {
	index := indexes.New()
	return index, &handlers.Handler{ID: "by-name", Family: handlers.Indexing, Index: &handlers.IndexWork{
		Store: index, Call: func(_ context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
			return map[any]any{(&unstructured.Unstructured{Object: call.Object}).GetName(): true}, false, nil
		},
	}}
}

func TestHandlersWaitForIndices(t *testing.T) {
	slow := func(server *memapi.Server) *memapi.Connection {
		return delayLists(server, "secrets", steady(time.Minute))
	}
	forbidden := func(server *memapi.Server) *memapi.Connection { return unavailable(server, "secrets", 403) }
	tests := map[string]struct {
		reason string
		way    func(server *memapi.Server) *memapi.Connection
		family handlers.Family
		want   string // the age and the size of the index of another kind at the first call
	}{
		"Slow": {
			"a change handler is not called before the indexed kind is listed", slow, handlers.Changing,
			"1m0s: 20 secrets",
		},
		"Events": {"an event handler is not called before the indexed kind is listed", slow, handlers.Watching,
			"1m0s: 20 secrets"},
		"Timers": {"a timer is not called before the indexed kind is listed", slow, handlers.Background,
			"1m0s: 20 secrets"},
		"Forbidden": {
			"an indexed kind that cannot be listed is not waited for", forbidden, handlers.Changing, "0s: 0 secrets",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
				for n := range 20 {
					p.create("Secret", fmt.Sprint("s", n))
				}
				p.create("ConfigMap", "c")
				index, filling := byName()
				began := time.Now()
				seen := make(chan string, 100)
				h := &handlers.Handler{ID: "h", Family: tc.family, Call: func(
					context.Context, *handlers.Invocation,
				) error {
					seen <- fmt.Sprintf("%s: %d secrets", time.Since(began).Round(10*time.Second), index.Len())
					return nil
				}}
				if tc.family == handlers.Changing {
					h.Reason = cause.Create
				}
				if tc.family == handlers.Background {
					h.Background = &handlers.BackgroundOptions{}
				}
				stop := operateAll(t, tc.way(server), reconcilers.Options{},
					registrationFor(t, "configmaps", h), registrationFor(t, "secrets", filling))
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

// TestRefusedIndexedKind shows that an indexed kind whose handlers are refused is not waited for.
func TestRefusedIndexedKind(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		_, filling := byName()
		_, again := byName()
		var calls atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{}, registrationFor(t, "secrets", filling),
			registrationFor(t, "secret", again),
			registrationFor(t, "configmaps", counting("h", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("%d calls in an hour, want 1", calls.Load())
		}
	})
}

// TestIndexedKindGoes shows that an indexed kind that is removed before it was listed is not waited for.
func TestIndexedKindGoes(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		server.Install(memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
		_, filling := byName()
		var calls atomic.Int64
		gate := &reconcilers.Gate{}
		stop := operateAll(t, delayLists(server, "things", steady(20*time.Second)),
			reconcilers.Options{Gate: gate}, registrationFor(t, "things.v1.x.io", filling),
			registrationFor(t, "configmaps", counting("h", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		t.Logf("before the removal: %d calls", calls.Load())
		server.Remove("x.io", "things")
		gate.Set(false)
		time.Sleep(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("%d calls in an hour, want 1", calls.Load())
		}
	})
}

// TestIndexOfRemovedKind shows that the index entries of a removed kind are removed.
func TestIndexOfRemovedKind(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		server.Install(memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
		index, filling := byName()
		var forgot atomic.Int64
		stop := operateAll(
			t, server, reconcilers.Options{OnGone: func(types.UID) { forgot.Add(1) }},
			registrationFor(t, "things.v1.x.io", filling),
		)
		defer stop()
		o := p.object("Thing", "a")
		o.SetAPIVersion("x.io/v1")
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if index.Len() != 1 {
			t.Fatal(index.Len())
		}
		server.Remove("x.io", "things")
		time.Sleep(time.Hour)
		if index.Len() != 0 || forgot.Load() != 1 {
			t.Errorf("%d entries, %d forgotten, an hour after the kind was removed, want 0 and 1", index.Len(),
				forgot.Load())
		}
	})
}

// TestNaN shows that keys that do not equal themselves are not indexed.
func TestNaN(t *testing.T) {
	i := indexes.New()
	nan := math.NaN()
	for range 3 {
		i.ReplaceEntries("u", map[any]any{nan: 1})
	}
	i.ReplaceEntries("u", nil)
	if i.Len() != 0 {
		t.Errorf("%d keys remain in the index, want 0", i.Len())
	}
}

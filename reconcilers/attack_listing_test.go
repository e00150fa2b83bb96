package reconcilers_test

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// What others remember of an object stays until they were told of its end.
func TestForgottenBeforeDeletedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var order = make(chan string, 10)
		stop := operateAll(t, server, reconcilers.Options{Forget: func(types.UID) { order <- "forget" }},
			to(t, "configmaps", &handlers.Handler{ID: "e", Family: handlers.Watching,
				Call: func(_ context.Context, c *handlers.Call) error {
					order <- c.Cause.Type
					return nil
				}}))
		time.Sleep(time.Second)
		p.create("ConfigMap", "a")
		time.Sleep(time.Second)
		p.remove("ConfigMap", "a")
		time.Sleep(time.Minute)
		stop()
		close(order)
		var all []string
		for s := range order {
			all = append(all, s)
		}
		if strings.Join(all, " ") != "ADDED DELETED forget" {
			t.Errorf("%v", all)
		}
	})
}

// A kind that is refused is not waited for.
func TestRefusedIndexedKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		_, filling := byName()
		_, again := byName()
		var calls atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{}, to(t, "secrets", filling), to(t, "secret", again),
			to(t, "configmaps", counting("h", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("%d calls in an hour", calls.Load())
		}
	})
}

// Nor is one that goes before it was listed.
func TestIndexedKindGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		server.Install(memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
		_, filling := byName()
		var calls atomic.Int64
		gate := &reconcilers.Gate{}
		stop := operateAll(t, held{RoundTripper: server, plural: "things", pause: 20 * time.Second},
			reconcilers.Options{Gate: gate}, to(t, "things.v1.x.io", filling),
			to(t, "configmaps", counting("h", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		t.Logf("before the removal: %d calls", calls.Load())
		server.Remove("x.io", "things")
		gate.Set(false)
		time.Sleep(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("%d calls in an hour", calls.Load())
		}
	})
}

// A kind that cannot be listed, and then goes, is not waited for.
func TestIndexedKindVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		server.Install(memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
		_, filling := byName()
		var calls atomic.Int64
		stop := operateAll(t, unavailable{server}, reconcilers.Options{}, to(t, "things.v1.x.io", filling),
			to(t, "configmaps", counting("h", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Minute)
		t.Logf("before the removal: %d calls", calls.Load())
		server.Remove("x.io", "things")
		time.Sleep(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("%d calls in an hour", calls.Load())
		}
	})
}

// unavailable: things cannot be listed while served, as their conversion webhook is down: each request takes a minute,
// then 500.
type unavailable struct{ http.RoundTripper }

func (u unavailable) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/things") {
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	return u.RoundTripper.RoundTrip(r)
}

// Nothing is to be found of the objects of a kind that is no more.
func TestIndexOfRemovedKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		server.Install(memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
		index, filling := byName()
		var forgot atomic.Int64
		stop := operateAll(
			t, server, reconcilers.Options{Forget: func(types.UID) { forgot.Add(1) }}, to(t, "things.v1.x.io", filling),
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
			t.Errorf("%d entries, %d forgotten, an hour after the kind was removed", index.Len(), forgot.Load())
		}
	})
}

// lagging delays lists and watches of one resource by what is set.
type lagging struct {
	http.RoundTripper
	plural string
	lag    *atomic.Int64
}

func (l lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+l.plural) && r.Method == http.MethodGet {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(time.Duration(l.lag.Load())):
		}
	}
	return l.RoundTripper.RoundTrip(r)
}

// A listing that a pause has cut off is none.
func TestPauseBeforeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		p.create("Secret", "s")
		index, filling := byName()
		var found atomic.Int64
		found.Store(-1)
		gate := &reconcilers.Gate{}
		stop := operateAll(t, held{RoundTripper: server, plural: "secrets", pause: 20 * time.Second},
			reconcilers.Options{Gate: gate}, to(t, "secrets", filling),
			to(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create,
				Call: func(context.Context, *handlers.Call) error {
					found.Store(int64(index.Len()))
					return nil
				}}))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		gate.Set(false)
		time.Sleep(time.Hour)
		if found.Load() != 1 {
			t.Errorf("the handler found %d of 1 secrets in the index", found.Load())
		}
	})
}

// What was known before two pauses in a row is known after them.
func TestTwoPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		index, filling := byName()
		gate := &reconcilers.Gate{}
		lag := &atomic.Int64{}
		var forgot, running, most, once atomic.Int64
		stop := operateAll(t, lagging{server, "configmaps", lag},
			reconcilers.Options{Gate: gate, Forget: func(types.UID) { forgot.Add(1) }}, to(t, "configmaps", filling),
			to(t, "configmaps", daemon("once", handlers.Background{}, func(
				ctx context.Context, _ *handlers.Call,
			) error {
				once.Add(1)
				return nil
			})),
			to(t, "configmaps", daemon("d", handlers.Background{CancelTimeout: time.Second},
				func(ctx context.Context, _ *handlers.Call) error {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer running.Add(-1)
					<-ctx.Done()
					time.Sleep(10 * time.Minute)
					return nil
				})))
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(10 * time.Second)
		lag.Store(int64(20 * time.Second))
		gate.Set(false)
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(5 * time.Second)
		entries := index.Len()
		lag.Store(0)
		gate.Set(false)
		time.Sleep(time.Minute)
		if most.Load() != 1 || forgot.Load() != 0 || once.Load() != 1 || entries != 1 {
			t.Errorf(
				"%d instances at once; %d living objects forgotten; a daemon that was done called %d times; %d of 1 "+
					"entries in the pause",
				most.Load(), forgot.Load(), once.Load(), entries,
			)
		}
		stop()
		time.Sleep(20 * time.Minute)
	})
}

// Keys that are not even equal to themselves are left out.
func TestNaN(t *testing.T) {
	i := indexes.New()
	nan := math.NaN()
	for range 3 {
		i.Replace("u", map[any]any{nan: 1})
	}
	i.Remove("u")
	if i.Len() != 0 {
		t.Errorf("%d keys of nobody", i.Len())
	}
}

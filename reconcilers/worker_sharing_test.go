package reconcilers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	kindapi "github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// TestRetriesAndTicksBesideHotObjects shows that objects that are edited all the time leave slots to retries, and that
// ticks need none.
func TestRetriesAndTicksBesideHotObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const hot, workers, span = 60, 10, 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &callRecorder{}
		p := newDirectClient(t, server)
		p.create("ConfigMap", "calm")
		tick := timer(
			"t",
			time.Second,
			func(_ context.Context, c *handlers.Invocation) error { j.note("t", c); return nil },
		)
		tick.Filters = []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
			return (&unstructured.Unstructured{Object: c.Body()}).GetName() == "calm", nil
		}}
		stop := operateAll(t, server, reconcilers.Options{Settings: reconcilers.Settings{Workers: workers}},
			registrationFor(t, "configmaps", j.handler("c", cause.Create, func(name string, _ int) error {
				if name == "calm" {
					return errNotYet
				}
				return nil
			})),
			registrationFor(t, "configmaps", j.handler("u", cause.Update, func(
				string, int,
			) error {
				time.Sleep(500 * time.Millisecond)
				return nil
			})),
			registrationFor(t, "configmaps", tick))
		defer stop()
		time.Sleep(time.Second)
		p.createMany("ConfigMap", "hot", hot)
		time.Sleep(time.Second)
		edits := 0
		edit := func(until time.Time) {
			for ; time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
				edits++
				for n := range hot {
					p.label("ConfigMap", fmt.Sprint("hot-", n), fmt.Sprint(edits))
				}
			}
		}
		edit(time.Now().Add(5 * time.Second))
		ticks, retries := len(j.of("t", "calm")), len(j.of("c", "calm"))
		edit(time.Now().Add(span))
		ticks, retries = len(j.of("t", "calm"))-ticks, len(j.of("c", "calm"))-retries
		least := 1000
		for n := range hot {
			least = min(least, len(j.of("u", fmt.Sprint("hot-", n))))
		}
		t.Logf(
			"beside %d hot objects, each updated at least %d times: %d ticks and %d retries of 20", hot, least, ticks,
			retries,
		)
		// A retry is written to the object, so the object also competes with the changed ones.
		if ticks < 15 || retries < least/2 {
			t.Errorf("beside hot objects, %d ticks and %d retries of 20", ticks, retries)
		}
		if least < 6 {
			t.Errorf("a hot object was updated only %d times, want a fair share", least)
		}
	})
}

// TestExitWhileRequestsWaitForPlaces shows that requests that wait for slots do not delay the exit, and that the next
// process handles them.
func TestExitWhileRequestsWaitForPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &callRecorder{}
		p := newDirectClient(t, server)
		stop := operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 10}},
			registrationFor(t, "configmaps", j.handler("c", cause.Create, nil)),
		)
		p.createMany("ConfigMap", "hanging-c", 20)
		time.Sleep(2 * time.Second)
		p.createMany("ConfigMap", "honest", 50)
		time.Sleep(2 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > kindapi.DefaultExitTimeout {
			t.Errorf("the exit took %s, want at most the exit timeout", took)
		}
		if calls := j.of("c", "honest-0"); len(calls) != 0 {
			t.Fatal("requests must wait at the exit")
		}
		began = time.Now()
		stop = operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", j.handler("c", cause.Create, nil)))
		defer stop()
		time.Sleep(3 * time.Second)
		for n := range 50 {
			j.requireCall(t, "c", fmt.Sprint("honest-", n), 1, began, 2*time.Second)
		}
	})
}

// TestWorkersAreSharedByNamespaces shows that one worker is shared by all namespaces, for handlers that must never run
// at the same time.
func TestWorkersAreSharedByNamespaces(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var running, most, calls atomic.Int64
		alone := &handlers.Handler{ID: "c", Reason: cause.Create, Call: func(
			context.Context, *handlers.Invocation,
		) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			calls.Add(1)
			return nil
		}}
		stop := operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 1}, Namespaces: named("a", "b", "c")},
			registrationFor(t, "configmaps", alone),
		)
		defer stop()
		time.Sleep(time.Second)
		for n := range 30 {
			o := p.object("ConfigMap", fmt.Sprint("o", n))
			o.SetNamespace([]string{"a", "b", "c"}[n%3])
			if err := p.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(40 * time.Second)
		if most.Load() != 1 || calls.Load() != 30 {
			t.Errorf("%d at once, %d of 30 done in 40 s of 1 s each, want 1 and 30", most.Load(), calls.Load())
		}
	})
}

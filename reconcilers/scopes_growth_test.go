package reconcilers_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// heap returns the memory in use, in KiB, without the history of the server.
func heap(server *memapi.Server) int {
	server.Compact()
	var now runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&now)
	return int(now.HeapAlloc >> 10)
}

// TestNamespacesLeaveNothing shows that goroutines, watches, memory, index entries and daemons of a served namespace
// end with the namespace.
func TestNamespacesLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const many, rounds = 200, 2
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		l.createNamespace("a-stays")
		index, filling := byName()
		var calls, ticks, running, forgotten atomic.Int64
		connection := &watchCounter{RoundTripper: server, plural: "configmaps"}
		stop := operateAll(t, connection, reconcilers.Options{
			Namespaces: named("a-*"), OnGone: func(types.UID) { forgotten.Add(1) },
		},
			registrationFor(t, "configmaps", filling),
			registrationFor(t, "configmaps", counting("c", cause.Create, &calls)),
			registrationFor(t, "configmaps", timer("t", time.Minute, counting("t", "", &ticks).Call)),
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{}, func(
				_ context.Context, c *handlers.Invocation,
			) error {
				running.Add(1)
				defer running.Add(-1)
				<-c.LiveObject.Stopping()
				return nil
			})))
		defer stop()
		time.Sleep(time.Minute)
		var goroutines, memory []int
		for round := range rounds {
			goroutines, memory = append(goroutines, growth.Goroutines()), append(memory, heap(server))
			for n := range many {
				l.createNamespace(fmt.Sprint("a-", n))
			}
			time.Sleep(time.Minute)
			if open, entries := connection.open.Load(), index.Len(); open != many+1 || entries != many+1 {
				t.Errorf("round %d: %d watches, %d entries, want one per namespace", round, open, entries)
			}
			t.Logf("round %d: %d goroutines and %d KiB before, %d and %d with %d namespaces more", round,
				goroutines[round], memory[round], growth.Goroutines(), heap(server), many)
			for n := range many {
				l.deleteNamespace(fmt.Sprint("a-", n))
			}
			time.Sleep(time.Minute)
			if open, entries, left := connection.open.Load(), index.Len(), running.Load(); open != 1 || entries != 1 ||
				left != 1 {
				t.Errorf("round %d: %d watches, %d entries, %d daemons are left, want 1 of each", round, open, entries,
					left)
			}
		}
		goroutines, memory = append(goroutines, growth.Goroutines()), append(memory, heap(server))
		if first, last := goroutines[0], goroutines[rounds]; last > first {
			t.Errorf("%d goroutines before, %d after, want no more: %v", first, last, goroutines)
		}
		if second, last := memory[1], memory[rounds]; last > second+second/4 {
			t.Errorf("%d KiB after a round, %d after %d, want at most a quarter more: %v", second, last, rounds, memory)
		}
		if calls.Load() != 1+many*rounds || forgotten.Load() < many*rounds || ticks.Load() == 0 {
			t.Errorf("%d calls, %d ticks, %d forgotten, want one call and forgotten object per namespace", calls.Load(),
				ticks.Load(), forgotten.Load())
		}
	})
}

// TestNamespacesInAPause shows that namespaces are followed in a pause, and that the objects of removed namespaces are
// forgotten after it.
func TestNamespacesInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		l.createNamespace("a1")
		l.createNamespace("a2")
		index, filling := byName()
		gate := &reconcilers.Gate{}
		var seen namespaceRecorder
		var forgotten atomic.Int64
		served := namespaces.NewLive()
		m := newCheckedManager(t, server)
		stop := operateIn(t, m, reconcilers.Options{
			Namespaces: named("a*"), Gate: gate, MatchingNamespaces: served,
			OnGone: func(types.UID) { forgotten.Add(1) },
		}, registrationFor(t, "configmaps", filling), registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
		defer stop()
		time.Sleep(time.Minute)
		gate.Set(true)
		time.Sleep(time.Minute)
		l.deleteNamespace("a1")
		l.createNamespace("a3")
		time.Sleep(time.Minute)
		if names, _ := served.Current(); fmt.Sprint(names) != "[a2 a3]" || seen.take() != "a1 a2" {
			t.Errorf("in the pause: %v, want a2 and a3", names)
		}
		gate.Set(false)
		time.Sleep(time.Minute)
		if got := seen.take(); got != "a3" || index.Len() != 2 || forgotten.Load() != 1 {
			t.Errorf("handled in %q, %d entries, %d objects forgotten, want a3, 2 and 1", got, index.Len(),
				forgotten.Load())
		}
		m.requireFailingChecks("after the pause with removed and new namespaces", m.ready)
	})
}

// TestIndicesOfNamespaces shows that handlers and the readiness wait for the indices of all namespaces, and so for the
// list of namespaces.
func TestIndicesOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		for _, name := range []string{"a1", "a2", "b"} {
			l.createNamespace(name)
		}
		index, filling := byName()
		found := make(chan int, 10)
		m := newCheckedManager(t, delayLists(server, "namespaces", steady(20*time.Second)))
		stop := operateIn(t, m, reconcilers.Options{Namespaces: named("a*")}, registrationFor(t, "configmaps", filling),
			registrationFor(t, "namespaces", &handlers.Handler{ID: "h", Reason: cause.Create,
				Call: func(context.Context, *handlers.Invocation) error {
					found <- index.Len()
					return nil
				}}))
		defer stop()
		time.Sleep(5 * time.Second)
		m.requireFailingChecks("while namespaces are being listed", m.ready,
			"caches: namespaces: not listed yet",
			"discovery: the API server has not answered yet for: namespaces",
			"indices: handlers wait until the indexed resources are listed: namespaces")
		time.Sleep(time.Minute)
		m.requireFailingChecks("after all is listed", m.ready)
		if got := <-found; got != 2 {
			t.Errorf("the first handler found %d of 2 objects in the index", got)
		}
	})
}

// TestRefusedResourceInNewNamespaces shows that a resource whose handlers are refused is not waited for in new
// namespaces.
func TestRefusedResourceInNewNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		l.createNamespace("a1")
		var calls atomic.Int64
		m := newCheckedManager(t, server)
		stop := operateIn(t, m, reconcilers.Options{Namespaces: named("a*")},
			registrationFor(t, "configmaps", counting("c", cause.Create, &calls)),
			registrationFor(t, "cm", counting("c", cause.Create, &calls)))
		defer stop()
		time.Sleep(time.Minute)
		l.createNamespace("a2")
		time.Sleep(time.Minute)
		m.requireFailingChecks("with two handlers of one id", m.ready)
	})
}

package kopf_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// handledIDs records the ids of handlers in the order of their calls.
type handledIDs struct {
	mu  sync.Mutex
	ids []string
}

func (c *handledIDs) handle(_ context.Context, change *kopf.Change[*router]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, change.ID)
	return nil
}

// runRouter returns the calls of handlers for a router that is created, changed and deleted, and whether the router is
// gone.
func runRouter(t *testing.T, register func(s kopf.Selection[*router], calls *handledIDs)) (calls []string, gone bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, noted := memapi.New(), &handledIDs{}
		server.Install(routers)
		server.Put(routers, map[string]any{
			"metadata": map[string]any{"namespace": "ns", "name": "r1", "uid": "r1"},
			"spec":     map[string]any{"size": int64(1)},
		})
		op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addRouters}})
		register(kopf.For(op, &router{}), noted)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(10 * time.Second)
		server.Edit(routers, "ns", "r1", func(o map[string]any) { o["spec"] = map[string]any{"size": int64(2)} })
		time.Sleep(10 * time.Second)
		server.Delete(routers, "ns", "r1")
		time.Sleep(10 * time.Second)
		calls, gone = noted.ids, server.Object(routers, "ns", "r1") == nil
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
	})
	return calls, gone
}

// TestFieldFiltersLookAtThePresentState shows that field filters of creations and deletions use the current state,
// and filters of updates also the old one.
func TestFieldFiltersLookAtThePresentState(t *testing.T) {
	inField := kopf.InField("spec")
	not := func(size int64) func(value any, present bool) bool {
		return func(value any, _ bool) bool {
			spec, _ := value.(map[string]any)
			return spec["size"] != size
		}
	}
	calls, gone := runRouter(t, func(s kopf.Selection[*router], calls *handledIDs) {
		s.OnCreate("create-absent", calls.handle, inField, kopf.Value(kopf.Absent))
		s.OnCreate("create-not", calls.handle, inField, kopf.Value(not(1)))
		s.OnCreate("create", calls.handle, inField, kopf.Value(func(value any, _ bool) bool {
			return value.(map[string]any)["size"] == int64(1) //nolint:forcetypeassert // nil panics
		}))
		s.OnUpdate("update-former", calls.handle, inField, kopf.Value(not(2)))
		s.OnDelete("delete-former", calls.handle, inField, kopf.Value(map[string]any{"size": 1}))
		s.OnDelete("delete", calls.handle, inField, kopf.Value(map[string]any{"size": 2}))
	})
	want := []string{"create/spec", "update-former/spec", "delete/spec"}
	if d := cmp.Diff(want, calls); d != "" || !gone {
		t.Errorf("field filters of creations and deletions use the current state: gone: %v; -want, +got:\n%s", gone, d)
	}
}

// TestPanicsOfFiltersAffectTheirHandlersAlone shows that a panicking filter skips its own handler and no others.
func TestPanicsOfFiltersAffectTheirHandlersAlone(t *testing.T) {
	panics := func(context.Context, *router) bool { panic("no such map") }
	calls, gone := runRouter(t, func(s kopf.Selection[*router], calls *handledIDs) {
		bad := s.When(panics)
		bad.OnCreate("bad-create", calls.handle, kopf.Retries(1))
		s.OnUpdate("bad-update", calls.handle, kopf.Retries(1), kopf.InField("spec"),
			kopf.Value(func(any, bool) bool { panic("no such value") }))
		bad.OnDelete("bad-delete", calls.handle, kopf.Retries(1))
		bad.OnEvent(
			"bad-event",
			func(context.Context, *kopf.WatchEvent[*router]) error { t.Error("called"); return nil },
		)
		bad.Daemon("bad-daemon", func(context.Context, *kopf.Task[*router]) error { t.Error("called"); return nil })
		bad.Timer("bad-timer", time.Second, func(context.Context, *kopf.Task[*router]) error {
			t.Error("called")
			return nil
		})
		kopf.NewIndex(bad, "bad-index", func(context.Context, *router) (map[string]string, error) {
			t.Error("called")
			return nil, nil
		})
		s.OnCreate("create", calls.handle)
		s.OnUpdate("update", calls.handle)
		s.OnDelete("delete", calls.handle)
		s.OnDelete("parent", func(_ context.Context, c *kopf.Change[*router]) error {
			c.Sub("bad", calls.handle, kopf.Retries(1), kopf.InField("spec"),
				kopf.Value(func(any, bool) bool { panic("no such value") }))
			c.Sub("good", calls.handle)
			return nil
		})
	})
	slices.Sort(calls)
	if d := cmp.Diff([]string{"create", "delete", "parent/good", "update"}, calls); d != "" || !gone {
		t.Errorf("a panicking filter skips only its own handler, and the object is deleted: gone: %v; -want, +got:\n%s",
			gone, d)
	}
}

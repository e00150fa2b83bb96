package kopf_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// cost is the cost of an operator whose objects have three children each.
type cost struct {
	created, restarted map[string]float64 // requests for one parent, by verb and resource
	heap               float64            // KiB for one parent, after a restart
}

// TestEnsureFigures logs the cost of children, and that of the same reconciler written with plain
// controller-runtime. The variable ENSURE_PARENTS sets the number of parents.
func TestEnsureFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	parents := 10
	if asked := os.Getenv("ENSURE_PARENTS"); asked != "" {
		var err error
		if parents, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
	}
	var resumed, watched, idle, byHand, watchedByHand cost
	withEnsureFixture(t, func(h ensureFixture) {
		resumed = h.measure(parents, h.runEnsuring(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", kopf.CreateUpdateResume(), ensure)
		}))
	})
	withEnsureFixture(t, func(h ensureFixture) {
		idle = h.measure(parents, h.runEnsuring(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, ensure)
			s.OnDelete("leave", func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
		}))
	})
	withEnsureFixture(t, func(h ensureFixture) {
		watched = h.measure(parents, h.runEnsuring(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", kopf.CreateUpdateResume(), ensure)
			s.Owns(newRoom())
		}))
	})
	withEnsureFixture(t, func(h ensureFixture) { byHand = h.measure(parents, h.runByHand()) })
	withEnsureFixture(t, func(h ensureFixture) { watchedByHand = h.measure(parents, h.runByHand(newRoom())) })
	told := []cost{resumed, watched, idle, byHand, watchedByHand}
	for i, what := range []string{
		"ensured, for restarts as well", "and watched", "ensured, with a finalizer", "by hand", "and watched",
	} {
		t.Logf("%d parents, %s: %v, after a restart %v and %.1f KiB for each",
			parents, what, told[i].created, told[i].restarted, told[i].heap)
	}
	for what, c := range map[string]struct{ want, got map[string]float64 }{
		"a creation": {
			map[string]float64{"get configmaps": 3, "patch configmaps": 3, "patch houses": 2}, resumed.created,
		},
		"a creation, with a finalizer": {
			map[string]float64{"get configmaps": 3, "patch configmaps": 3, "patch houses": 3}, idle.created,
		},
		"a creation, with children watched": {
			map[string]float64{"get configmaps": 3, "patch configmaps": 3, "patch houses": 2}, watched.created,
		},
		"a restart with children watched: each child is checked once": {
			map[string]float64{"get configmaps": 3, "patch configmaps": 3}, watched.restarted,
		},
		"a restart with the handler: each child is checked once": {
			map[string]float64{"get configmaps": 3, "patch configmaps": 3}, resumed.restarted,
		},
		"a restart without the handler": {map[string]float64{}, idle.restarted},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("requests for each parent at %s, -want, +got:\n%s", what, d)
		}
	}
	if parents >= 1000 && (resumed.heap > 2*byHand.heap || watched.heap > 2*watchedByHand.heap) {
		t.Error("a parent takes at most twice the memory of the hand-written reconciler")
	}
}

// runEnsuring returns a function that runs an operator with these handlers.
func (h ensureFixture) runEnsuring(
	register func(s kopf.Selection[*kopf.Unstructured]),
) func(way *memapi.Connection) (stop func() error) {
	return func(way *memapi.Connection) (stop func() error) {
		op := kopf.New("test.example.org")
		register(kopf.ForResource(op, "test.example.org/v1", "houses"))
		return startInManager(h.t, way, op)
	}
}

// measure creates parents under an operator and restarts the operator, which must not change any object.
func (h ensureFixture) measure(parents int, start func(way *memapi.Connection) (stop func() error)) (f cost) {
	h.t.Helper()
	way := h.api.Connect()
	stop := start(way)
	h.settle()
	way.DrainRequests()
	for n := range parents {
		name := fmt.Sprint("home-", n)
		house := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.example.org/v1", "kind": "House",
			"metadata": map[string]any{"name": name, "namespace": "default"},
			"spec":     map[string]any{"rooms": []any{name + "-a=1", name + "-b=2", name + "-c=3"}},
		}}
		if err := h.directClient.Create(h.t.Context(), house); err != nil {
			h.t.Fatal(err)
		}
	}
	h.settle()
	f.created = perParent(way.DrainRequests(), parents)
	h.stop(stop)
	before := h.versions(parents)
	if len(before) != 4*parents {
		h.t.Fatalf("all parents and children are created: got %d of %d", len(before), 4*parents)
	}

	heap := liveHeap()
	way = h.api.Connect()
	stop = start(way)
	h.settle()
	f.restarted = perParent(way.DrainRequests(), parents)
	f.heap = (liveHeap() - heap) / float64(parents)
	h.stop(stop)
	if after := h.versions(parents); !maps.Equal(before, after) {
		h.t.Error("the restart changes no objects")
	}
	return f
}

func (h ensureFixture) stop(stop func() error) {
	h.t.Helper()
	if err := stop(); err != nil {
		h.t.Error(err)
	}
}

// versions returns the resource versions of all parents and children.
func (h ensureFixture) versions(parents int) map[string]string {
	all := map[string]string{}
	for n := range parents {
		name := fmt.Sprint("home-", n)
		if house := h.api.Object(houses, "default", name); house != nil {
			all[name] = (&unstructured.Unstructured{Object: house}).GetResourceVersion()
		}
		for _, room := range []string{"-a", "-b", "-c"} {
			if child := h.room("default", name+room); child != nil {
				all[name+room] = child.GetResourceVersion()
			}
		}
	}
	return all
}

// perParent returns the requests per parent, without lists, watches and events.
func perParent(requests []memapi.Request, parents int) map[string]float64 {
	counts := map[string]float64{}
	for _, r := range requests {
		if r.Verb == "list" || r.Verb == "watch" || r.Resource.Plural == "events" {
			continue
		}
		what := r.Verb + " " + r.Resource.Plural
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		counts[what]++
	}
	for what := range counts {
		counts[what] /= float64(parents)
	}
	return counts
}

// liveHeap returns the size of the live heap in KiB.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // frees the objects of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1024
}

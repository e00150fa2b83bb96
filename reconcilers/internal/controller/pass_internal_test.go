package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// pass runs one pass and returns its result.
func (w *objectFixture) pass() reconcile.Result {
	w.t.Helper()
	result := w.controller.runPass(w.t.Context(), request.NamespacedName, new(bool))
	return result
}

// requireRequeue runs a pass and checks after which delay it requests the next one, at the priority of retries.
func (w *objectFixture) requireRequeue(when string, after time.Duration) {
	w.t.Helper()
	result := w.pass()
	if result.RequeueAfter != after {
		w.t.Errorf("%s: requeued after %s, want %s", when, result.RequeueAfter, after)
	}
	if result.Priority == nil || *result.Priority != source.PriorityRetry {
		w.t.Errorf("%s: the request keeps its former priority: %v", when, result.Priority)
	}
}

func (w *objectFixture) requireCalls(when string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.calls); d != "" {
		w.t.Errorf("%s: calls: -want, +got:\n%s", when, d)
	}
}

// requireForgotten checks that no memory of any object is kept.
func (w *objectFixture) requireForgotten(when string) {
	w.t.Helper()
	if kept := w.controller.objects.Len(); kept > 0 {
		w.t.Errorf("%s: memory of %d objects is kept", when, kept)
	}
}

// changingStore is a cache that changes before or after each lookup.
type changingStore struct {
	toolscache.Store
	before, after func()
}

func (m changingStore) GetByKey(key string) (any, bool, error) {
	m.before()
	defer m.after()
	return m.Store.GetByKey(key)
}

func nothing() {}

// updateCacheAfterLookups delivers the state of the server, and then calls more, after the given number of lookups in
// the cache.
func (w *objectFixture) updateCacheAfterLookups(looks int, more func()) {
	w.controller.store = changingStore{w.cache, nothing, func() {
		if looks--; looks > 0 {
			return
		}
		w.controller.store = w.cache
		w.updateCacheWithEvent()
		more()
	}}
}

// handleWhileWriteArrives handles the object in one pass, and delivers its write during the lookups of the next one.
func handleWhileWriteArrives(looks int) func(w *objectFixture) {
	return func(w *objectFixture) {
		w.pass()
		w.updateCacheAfterLookups(looks, nothing)
		w.pass()
		w.requireCalls("the creation", "c")
	}
}

// TestPassTheNewestObject shows that a pass uses the newest state of the object, from the cache or from an own write,
// and repeats nothing.
func TestPassTheNewestObject(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *objectFixture)
	}{
		"OurWriteComesAsThePassBegins": {
			reason: "an own write that arrives after the first cache lookup is not handled again",
			play:   handleWhileWriteArrives(1),
		},
		"OurWriteComesAsTheMemoryIsAsked": {
			reason: "an own write that arrives around the memory lookup is not handled again",
			play:   handleWhileWriteArrives(2),
		},
		"ItsEndComesAsThePassBegins": {
			reason: "an object that leaves the cache after the first lookup is not handled again",
			play: func(w *objectFixture) {
				w.pass()
				w.updateCacheAfterLookups(1, func() {
					if err := w.cache.Delete(w.cached()); err != nil {
						w.t.Error(err)
					}
				})
				w.pass()
				w.requireCalls("the creation", "c")
			},
		},
		"CacheBehindOurWrite": {
			reason: "an own write is known before the watch delivers it, so nothing is repeated",
			play: func(w *objectFixture) {
				w.pass()
				w.edit(`{"metadata":{"labels":{"later":"yes"}}}`)
				w.pass()
				w.requireCalls("the cache has neither write nor edit", "c")
			},
		},
		"CacheCatchesUpDuringTheLook": {
			reason: "an object that was read before the cache had an own write is not taken for one " +
				"read after it",
			play: func(w *objectFixture) {
				w.pass()
				w.controller.store = changingStore{w.cache, nothing, w.updateCache}
				w.pass()
				w.requireCalls("the cache was read while it changed", "c")
			},
		},
		"CacheAheadOfOurWrite": {
			reason: "an edit by others on top of an own write is handled",
			play: func(w *objectFixture) {
				w.pass()
				w.edit(`{"spec":{"size":2}}`)
				w.updateCache()
				w.pass()
				w.requireCalls("the cache has write and edit", "c", "u")
			},
		},
		"CacheBetweenTwoOfOurWrites": {
			reason: "the second of two own writes is authoritative",
			play: func(w *objectFixture) {
				w.pass()
				w.updateCache()
				w.edit(`{"spec":{"size":2}}`)
				w.updateCache()
				w.pass()
				w.edit(`{"spec":{"size":1}}`)
				w.pass()
				w.requireCalls("the cache has the edit, but not the write after it", "c", "u")
			},
		},
		"NothingToDo": {
			reason: "a pass that writes nothing leaves no memory",
			play: func(w *objectFixture) {
				w.pass()
				w.updateCache()
				w.pass()
				w.pass()
				w.requireForgotten("after a pass without a cause")
				w.requireCalls("without a change", "c")
			},
		},
		"WriteArrivesDuringThePass": {
			reason: "a write that reached the cache during its pass leaves memory until its event only",
			play: func(w *objectFixture) {
				w.controller.store = changingStore{w.cache, w.updateCache, nothing}
				w.pass()
				w.pass()
				w.requireForgotten("after the pass for the event")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			tc.play(newObjectFixture(t, newCreateHandler("c"), &handlers.Handler{ID: "u", Reason: cause.Update}))
		})
	}
}

// TestPassComesBackForRetries shows that a pass is repeated when the next attempt is due, and not after a permanent
// failure.
func TestPassComesBackForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := newCreateHandler("c")
		flaky.Call = func(context.Context, *handlers.Invocation) error { return errors.New("not yet") }
		flaky.Policy = handlers.Policy{Backoff: ptr.To(10 * time.Second), Retries: ptr.To(2)}
		w := newObjectFixture(t, flaky)
		w.requireRequeue("the first attempt", 10*time.Second)
		time.Sleep(4 * time.Second)
		w.requireRequeue("an event during the delay", 6*time.Second)
		time.Sleep(6 * time.Second)
		if result := w.pass(); result.RequeueAfter != 0 {
			t.Errorf("a permanent failure requests another pass: %v", result)
		}
		w.requireCalls("after two attempts", "c", "c")
		w.updateCache()
		w.pass()
		w.requireForgotten("after the permanent failure")
	})
}

// TestPassOnExit shows that an exit interrupts the running handler, which the next process repeats, and keeps the
// results before it.
func TestPassOnExit(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	exited := false
	create := newCreateHandler("c")
	w := newObjectFixture(t, newCreateHandler("before"), create)
	noted := create.Call
	create.Call = func(ctx context.Context, c *handlers.Invocation) error {
		if err := noted(ctx, c); ctx.Err() != nil || exited {
			return err
		}
		exited = true
		stop()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, execution.ErrExiting) {
			t.Errorf("the context was cancelled by %v, want ErrExiting", cause)
		}
		return ctx.Err()
	}
	if result := w.controller.runPass(ctx, request.NamespacedName, new(bool)); result.RequeueAfter != 0 {
		t.Errorf("an exit requests another pass: %v", result)
	}
	if len(w.logLines) > 0 {
		t.Errorf("an exit is logged as an error: %q", w.logLines)
	}
	w.updateCache()
	w.pass()
	w.requireCalls("the next process repeats only the interrupted handler", "before", "c", "c")
}

// TestPassClusterScoped shows that a cluster-scoped object is found by its name alone.
func TestPassClusterScoped(t *testing.T) {
	w := newObjectFixture(t, newCreateHandler("c"))
	w.object = nil
	w.updateCache()
	w.create("u2")
	delete(w.object["metadata"].(map[string]any), "namespace")
	w.updateCache()
	w.controller.runPass(t.Context(), types.NamespacedName{Name: "a"}, new(bool))
	w.requireCalls("a cluster-scoped object", "c")
}

// TestObjectsAreCopiedOnDemand shows that the object is copied only when a handler reads it as a map. Most handlers
// decode it into a type of their own.
func TestObjectsAreCopiedOnDemand(t *testing.T) {
	asked := false
	asks := newCreateHandler("c")
	asks.Call = func(_ context.Context, c *handlers.Invocation) error {
		if c.Object != nil || !c.EncodedObject.IsEncoded() {
			t.Errorf("the object was already copied: %v", c.Object)
		}
		object, err := c.WorkingCopy()
		if asked = object["kind"] == "Widget"; err != nil {
			return err
		}
		object["kind"] = "changed"
		return nil
	}
	w := newObjectFixture(t, asks)
	if w.pass(); !asked || w.object["kind"] != "Widget" {
		t.Errorf("read: %t; the object is %v", asked, w.object)
	}
}

package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// pass makes one, and gives what it asks for.
func (w *world) pass() reconcile.Result {
	w.t.Helper()
	result, _ := w.controller.pass(w.t.Context(), request.NamespacedName)
	return result
}

// wantAgain expects the object to be looked at again after the delay, and after all that happens meanwhile.
func (w *world) wantAgain(when string, after time.Duration) {
	w.t.Helper()
	result := w.pass()
	if result.RequeueAfter != after {
		w.t.Errorf("%s: again after %s, want %s", when, result.RequeueAfter, after)
	}
	if result.Priority == nil || *result.Priority != source.PriorityRetry {
		w.t.Errorf("%s: the priority of what came before would stick: %v", when, result.Priority)
	}
}

func (w *world) wantCalls(when string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.calls); d != "" {
		w.t.Errorf("%s: calls: -want, +got:\n%s", when, d)
	}
}

// wantForgotten expects that nothing is kept of any object.
func (w *world) wantForgotten(when string) {
	w.t.Helper()
	if kept := w.controller.objects.Len(); kept > 0 {
		w.t.Errorf("%s: memory is kept of %d objects", when, kept)
	}
}

// moving is a cache that changes whenever it is looked at: before or after that.
type moving struct {
	store
	before, after func()
}

func (m moving) GetByKey(key string) (any, bool, error) {
	m.before()
	defer m.after()
	return m.store.GetByKey(key)
}

func nothing() {}

// deliverAfterLook has the informer bring what is on the server, and do more, when a pass has looked that many times.
func (w *world) deliverAfterLook(looks int, more func()) {
	w.controller.store = moving{w.cache, nothing, func() {
		if looks--; looks > 0 {
			return
		}
		w.controller.store = w.cache
		w.comes()
		more()
	}}
}

// handledAsOurWriteComes has one pass handle the object, and the next one look at it while our write comes.
func handledAsOurWriteComes(looks int) func(w *world) {
	return func(w *world) {
		w.pass()
		w.deliverAfterLook(looks, nothing)
		w.pass()
		w.wantCalls("the creation", "c")
	}
}

func TestPassTheNewestObject(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *world)
	}{
		"OurWriteComesAsThePassBegins": {
			reason: "the memory forgets our write when the cache has it: what the cache had before that is past",
			play:   handledAsOurWriteComes(1),
		},
		"OurWriteComesAsTheMemoryIsAsked": {
			reason: "the memory is asked before the cache: what it forgets in between would be handled again",
			play:   handledAsOurWriteComes(2),
		},
		"ItsEndComesAsThePassBegins": {
			reason: "the same with the end of the object, of which nobody is told yet",
			play: func(w *world) {
				w.pass()
				w.deliverAfterLook(1, func() {
					if err := w.cache.Delete(w.known()); err != nil {
						w.t.Error(err)
					}
				})
				w.pass()
				w.wantCalls("the creation", "c")
			},
		},
		"CacheBehindOurWrite": {
			reason: "what we have written ourselves is known before the watch tells it: nothing is done twice",
			play: func(w *world) {
				w.pass()
				w.edit(`{"metadata":{"labels":{"later":"yes"}}}`)
				w.pass()
				w.wantCalls("the cache has neither", "c")
			},
		},
		"CacheCatchesUpDuringTheLook": {
			reason: "an object that was read before the cache had our write is not taken for one that was read " +
				"after it",
			play: func(w *world) {
				w.pass()
				w.controller.store = moving{w.cache, nothing, w.deliver}
				w.pass()
				w.wantCalls("the cache was read while it changed", "c")
			},
		},
		"CacheAheadOfOurWrite": {
			reason: "an edit by others on top of our write is seen",
			play: func(w *world) {
				w.pass()
				w.edit(`{"spec":{"size":2}}`)
				w.deliver()
				w.pass()
				w.wantCalls("the cache has both", "c", "u")
			},
		},
		"CacheBetweenTwoOfOurWrites": {
			reason: "the second write is what counts",
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.edit(`{"spec":{"size":2}}`)
				w.deliver()
				w.pass()
				w.edit(`{"spec":{"size":1}}`)
				w.pass()
				w.wantCalls("the cache has the edit, but not that it was handled", "c", "u")
			},
		},
		"NothingToDo": {
			reason: "a pass that writes nothing leaves nothing behind",
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.pass()
				w.pass()
				w.wantForgotten("after a pass without a reason")
				w.wantCalls("nothing has changed", "c")
			},
		},
		"WriteArrivesDuringThePass": {
			reason: "of a write that the cache has when the pass ends, its event is waited for, and nothing else",
			play: func(w *world) {
				w.controller.store = moving{w.cache, w.deliver, nothing}
				w.pass()
				w.pass()
				w.wantForgotten("after the pass of the event")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			tc.play(newWorld(t, creating("c"), &handlers.Handler{ID: "u", Reason: cause.Update}))
		})
	}
}

func TestPassComesBackForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := creating("c")
		flaky.Call = func(context.Context, *handlers.Invocation) error { return errors.New("not yet") }
		flaky.Policy = handlers.Policy{Backoff: ptr.To(10 * time.Second), Retries: ptr.To(2)}
		w := newWorld(t, flaky)
		w.wantAgain("the first attempt", 10*time.Second)
		time.Sleep(4 * time.Second)
		w.wantAgain("an event meanwhile", 6*time.Second)
		time.Sleep(6 * time.Second)
		if result := w.pass(); result.RequeueAfter != 0 {
			t.Errorf("it failed permanently: %v", result)
		}
		w.wantCalls("two attempts", "c", "c")
		w.deliver()
		w.pass()
		w.wantForgotten("in the end")
	})
}

func TestPassOnExit(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	exited := false
	create := creating("c")
	w := newWorld(t, creating("before"), create)
	noted := create.Call
	create.Call = func(ctx context.Context, c *handlers.Invocation) error {
		if err := noted(ctx, c); ctx.Err() != nil || exited {
			return err
		}
		exited = true
		stop()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, execution.ErrExiting) {
			t.Errorf("the cause of the cancellation: %v", cause)
		}
		return ctx.Err()
	}
	if result, _ := w.controller.pass(ctx, request.NamespacedName); result.RequeueAfter != 0 {
		t.Errorf("an exit asks for nothing: %v", result)
	}
	if len(w.logged) > 0 {
		t.Errorf("an exit is no error: %q", w.logged)
	}
	w.deliver()
	w.pass()
	w.wantCalls("the next process repeats what was interrupted only", "before", "c", "c")
}

// Outside of namespaces, a key is the name alone.
func TestPassClusterScoped(t *testing.T) {
	w := newWorld(t, creating("c"))
	w.object = nil
	w.deliver()
	w.create("u2")
	delete(w.object["metadata"].(map[string]any), "namespace")
	w.deliver()
	w.controller.pass(t.Context(), types.NamespacedName{Name: "a"})
	w.wantCalls("an object in no namespace", "c")
}

// Most functions decode the object into a type of their own: nothing is copied for them.
func TestObjectsAreCopiedOnDemand(t *testing.T) {
	asked := false
	asks := creating("c")
	asks.Call = func(_ context.Context, c *handlers.Invocation) error {
		if c.Object != nil || !c.Given.Encoded() {
			t.Errorf("it was copied already: %v", c.Object)
		}
		object, err := c.Working()
		if asked = object["kind"] == "Widget"; err != nil {
			return err
		}
		object["kind"] = "changed"
		return nil
	}
	w := newWorld(t, asks)
	if w.pass(); !asked || w.object["kind"] != "Widget" {
		t.Errorf("asked: %t; the object is %v", asked, w.object)
	}
}

package changes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// cache has what the server has, or an older state.
type cache struct {
	*world
	older map[string]any
}

func (c *cache) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	body := c.older
	if body == nil {
		body = c.stored()
	}
	if key.String() != "ns/obj" || patching.UIDOf(body) != string(uid) {
		return nil
	}
	return body
}

// latest asks for the newest state.
func latest(c *handlers.Invocation) map[string]any {
	return c.Newest.Latest(
		types.NamespacedName{Namespace: "ns", Name: "obj"}, types.UID(patching.UIDOf(c.Cause.Body())),
	)
}

// sees expects a value in the newest state.
func (w *world) sees(when string, want any, path ...string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		w.want(when, want, at(latest(c), path...))
		return nil
	}
}

// with starts a process with a cache.
func (w *world) with(c *cache, registered ...*handlers.Handler) *process {
	p := w.start(registered...)
	p.handling.Cache = c
	return p
}

// TestLatest is about handlers that run long, and look at their object again.
func TestLatest(t *testing.T) {
	run(t, map[string]scenario{
		"Others": {"what others do is seen when the cache has it", func(w *world) {
			w.with(&cache{world: w}, onCreate("a", all(
				w.sees("at first", "one", "spec", "field"),
				func(context.Context, *handlers.Invocation) error { w.set("two", "spec", "field"); return nil },
				w.sees("by now", "two", "spec", "field"),
			))).settle()
		}},
		"Flushed": {"what was flushed is seen though the cache is late, and nothing else", func(w *world) {
			w.with(&cache{world: w, older: w.stored()}, onCreate("a", all(
				patches("x", "spec", "id"), w.sees("remembered", nil, "spec", "id"),
				flushes, w.sees("flushed", "x", "spec", "id"),
				patches("y", "spec", "id"), w.sees("remembered again", "x", "spec", "id"),
			))).settle()
		}},
		"FlushedAndChanged": {"the later of the two counts", func(w *world) {
			w.with(&cache{world: w}, onCreate("a", all(
				patches("x", "spec", "id"), flushes,
				func(context.Context, *handlers.Invocation) error { w.set("theirs", "spec", "id"); return nil },
				w.sees("by now", "theirs", "spec", "id"),
			))).settle()
		}},
		"Finalizer": {"what was written before the call is seen though the cache is late", func(w *world) {
			w.with(&cache{world: w, older: w.stored()}, onDelete("d", ok), onCreate("a",
				w.sees("at first", []any{finalizer}, "metadata", "finalizers"))).settle()
		}},
		"Checkpoint": {"the outcomes of others that are written meanwhile are seen", func(w *world) {
			w.with(&cache{world: w, older: w.stored()}, onCreate("a", returns("r")), onCreate("b", all(
				w.sees("at first", nil, "status", "a"), takes(10*time.Second), w.sees("by now", "r", "status", "a"),
			))).settle()
		}},
		"Subs": {"sub-handlers see the same", func(w *world) {
			w.with(&cache{world: w, older: w.stored()}, onCreate("a", runs(
				onCreate("s1", all(patches("x", "spec", "id"), flushes)),
				onCreate("s2", w.sees("flushed", "x", "spec", "id")),
			))).settle()
		}},
		"NoCache": {"without one, it is what was written", func(w *world) {
			w.start(onCreate("a", all(
				w.sees("at first", nil, "spec", "id"), patches("x", "spec", "id"), flushes,
				w.sees("flushed", "x", "spec", "id"),
			))).settle()
		}},
		"Gone": {"nobody waits for an object that is no more", func(w *world) {
			var cause error
			p := w.with(&cache{world: w}, onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				w.delete()
				w.want("the last state", "one", at(latest(c), "spec", "field"))
				cause = context.Cause(ctx)
				return cause
			}), onCreate("b", ok))
			p.settle()
			if !errors.Is(cause, changes.ErrDeleted) || !p.gone {
				w.t.Errorf("it is gone: the handler is cancelled by %v", cause)
			}
			w.wantCalls("all", "0s create a", "0s create b")
		}},
		"Concurrent": {"any goroutine of the handler may ask, also after its end", func(w *world) {
			var group sync.WaitGroup
			w.with(&cache{world: w}, onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				for range 4 {
					group.Go(func() {
						for range 20 {
							_ = latest(c)
						}
					})
				}
				return all(patches("x", "spec", "id"), flushes)(ctx, c)
			})).settle()
			group.Wait()
		}},
	})
}

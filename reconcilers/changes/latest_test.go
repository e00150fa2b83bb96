package changes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// cache returns the present state of the server, or an older state if set.
type cache struct {
	*harness
	olderBody map[string]any
}

func (c *cache) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	body := c.olderBody
	if body == nil {
		body = c.stored()
	}
	if key.String() != "ns/obj" || patching.ObjectUID(body) != string(uid) {
		return nil
	}
	return body
}

// latest returns the newest state of the object of a call.
func latest(c *handlers.Invocation) map[string]any {
	return c.LatestState.Latest(
		types.NamespacedName{Namespace: "ns", Name: "obj"}, types.UID(patching.ObjectUID(c.Cause.Body())),
	)
}

// expectState returns a handler that expects a value in the newest state.
func (w *harness) expectState(when string, want any, path ...string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		w.want(when, want, at(latest(c), path...))
		return nil
	}
}

// with starts a process with a cache.
func (w *harness) with(c *cache, registered ...*handlers.Handler) *process {
	p := w.start(registered...)
	p.handling.Cache = c
	return p
}

// TestLatest shows which state a long handler gets as the newest state of its object.
func TestLatest(t *testing.T) {
	run(t, map[string]scenario{
		"Others": {"edits of other clients are visible as soon as the cache has them", func(w *harness) {
			w.with(&cache{harness: w}, onCreate("a", all(
				w.expectState("at first", "one", "spec", "field"),
				func(context.Context, *handlers.Invocation) error { w.set("two", "spec", "field"); return nil },
				w.expectState("after the edit", "two", "spec", "field"),
			))).settle()
		}},
		"Flushed": {"flushed changes are visible with a stale cache, unflushed ones are not", func(w *harness) {
			w.with(&cache{harness: w, olderBody: w.stored()}, onCreate("a", all(
				patches("x", "spec", "id"), w.expectState("remembered", nil, "spec", "id"),
				flushes, w.expectState("flushed", "x", "spec", "id"),
				patches("y", "spec", "id"), w.expectState("remembered again", "x", "spec", "id"),
			))).settle()
		}},
		"FlushedAndChanged": {"an edit after a flush is visible", func(w *harness) {
			w.with(&cache{harness: w}, onCreate("a", all(
				patches("x", "spec", "id"), flushes,
				func(context.Context, *handlers.Invocation) error { w.set("theirs", "spec", "id"); return nil },
				w.expectState("after the edit", "theirs", "spec", "id"),
			))).settle()
		}},
		"Finalizer": {"writes before the call are visible with a stale cache", func(w *harness) {
			w.with(&cache{harness: w, olderBody: w.stored()}, onDelete("d", ok), onCreate("a",
				w.expectState("at first", []any{finalizer}, "metadata", "finalizers"))).settle()
		}},
		"Checkpoint": {"outcomes of other handlers are visible after a checkpoint with a stale cache",
			func(w *harness) {
				w.with(&cache{harness: w, olderBody: w.stored()}, onCreate("a", returns("r")), onCreate("b", all(
					w.expectState("at first", nil, "status", "a"), takes(10*time.Second),
					w.expectState("afterwards", "r", "status", "a"),
				))).settle()
			}},
		"Subs": {"sub-handlers see flushed changes of other sub-handlers", func(w *harness) {
			w.with(&cache{harness: w, olderBody: w.stored()}, onCreate("a", runs(
				onCreate("s1", all(patches("x", "spec", "id"), flushes)),
				onCreate("s2", w.expectState("flushed", "x", "spec", "id")),
			))).settle()
		}},
		"NoCache": {"without a cache, the newest state is the last written one", func(w *harness) {
			w.start(onCreate("a", all(
				w.expectState("at first", nil, "spec", "id"), patches("x", "spec", "id"), flushes,
				w.expectState("flushed", "x", "spec", "id"),
			))).settle()
		}},
		"Gone": {"a handler that reads the newest state of a deleted object is cancelled", func(w *harness) {
			var cause error
			p := w.with(&cache{harness: w}, onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				w.delete()
				w.want("the last state", "one", at(latest(c), "spec", "field"))
				cause = context.Cause(ctx)
				return cause
			}), onCreate("b", ok))
			p.settle()
			if !errors.Is(cause, execution.ErrDeleted) || !p.gone {
				w.t.Errorf("want the object gone and ErrDeleted as the cause, got %v", cause)
			}
			w.wantCalls("all", "0s create a", "0s create b")
		}},
		"Concurrent": {"any goroutine of a handler can read the newest state, also after the call", func(w *harness) {
			var group sync.WaitGroup
			w.with(&cache{harness: w}, onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
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

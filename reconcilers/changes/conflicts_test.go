package changes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// TestConflicts is about edits of others between the read and the write of a pass.
func TestConflicts(t *testing.T) {
	beforeWrite := func(w *world, number int, change func(write)) {
		w.before = func(r write) error {
			if r.number == number {
				change(r)
			}
			return nil
		}
	}
	run(t, map[string]scenario{
		"Main": {"fields that we do not touch may change under us", func(w *world) {
			p := w.start(onCreate("a", patches("x", "spec", "id")), onUpdate("u", ok))
			beforeWrite(w, 1, func(write) { w.set("two", "spec", "field") })
			_, _ = p.pass()
			w.wantWrites("all", "main 200")
			w.wantAt("all", "two", "spec", "field")
			w.wantAt("all", "x", "spec", "id")
			w.wantHandled("as the handler saw it", "one")
		}},
		"Status": {"a status is written to the version that was seen, or by closures run again", func(w *world) {
			w.serveStatus(true)
			w.set([]any{"x"}, "status", "list")
			p := w.start(onCreate("a", appends("a", "status", "list")))
			beforeWrite(w, 1, func(write) { w.set([]any{"x", "y"}, "status", "list") })
			p.settle()
			w.wantWrites("all", "status 409", "status 200", "main 200")
			w.wantAt("all", []any{"x", "y", "a"}, "status", "list")
		}},
		"BetweenTheTwo": {"an edit between the status and the main write", func(w *world) {
			w.serveStatus(true)
			w.set([]any{"x"}, "spec", "list")
			p := w.start(onCreate("a", all(appends("a", "spec", "list"), patches("s", "status", "s"))))
			beforeWrite(w, 2, func(write) { w.set([]any{"x", "y"}, "spec", "list") })
			p.settle()
			w.wantAt("all", []any{"x", "y", "a"}, "spec", "list")
			w.wantAt("all", "s", "status", "s")
			w.want("errors", []error(nil), p.errs)
		}},
		"List": {"the item of another in a list that we append to stays", func(w *world) {
			w.set([]any{"x"}, "spec", "list")
			p := w.start(onCreate("a", appends("a", "spec", "list")), onCreate("b", appends("b", "spec", "list")))
			beforeWrite(w, 1, func(write) { w.set([]any{"x", "y"}, "spec", "list") })
			_, _ = p.pass()
			w.wantAt("all", []any{"x", "y", "a", "b"}, "spec", "list")
			w.wantWrites("all", "main 409", "main 200")
		}},
		"Finalizers": {"so does the finalizer of another", func(w *world) {
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			beforeWrite(w, 1, func(write) { w.set([]any{"other/one"}, "metadata", "finalizers") })
			p.settle()
			w.wantAt("creation", []any{"other/one", finalizer}, "metadata", "finalizers")
			beforeWrite(
				w, 4, func(write) { w.set([]any{"other/one", finalizer, "other/two"}, "metadata", "finalizers") },
			)
			w.delete()
			p.settle()
			w.wantAt("deletion", []any{"other/one", "other/two"}, "metadata", "finalizers")
		}},
		"Endless": {"a race that is lost again and again ends the pass, not the work", func(w *world) {
			w.set([]any{"x"}, "spec", "list")
			p := w.start(onCreate("a", appends("a", "spec", "list")))
			w.before = func(r write) error {
				if r.number <= 7 {
					w.set(int64(r.number), "spec", "counter")
				}
				return nil
			}
			p.settle()
			w.want("errors", 1, len(p.errs))
			w.wantCalls("all", "0s create a")
			w.wantAt("all", []any{"x", "a"}, "spec", "list")
		}},
		"WorkingCopy": {"each handler sees what those before it have done, with their results", func(w *world) {
			var seen []any
			look := func(_ context.Context, c *handlers.Invocation) error {
				seen = append(seen, at(working(c), "spec", "id"), at(working(c), "status", "a"))
				return nil
			}
			p := w.start(
				onCreate("a", all(patches("x", "spec", "id"), returns(map[string]any{"k": "v"}))), onCreate("b", look),
			)
			p.settle()
			w.want("seen", []any{"x", map[string]any{"k": "v"}}, seen)
		}},
		"OwnCopy": {"what a handler does to its copy directly is its own affair", func(w *world) {
			var seen any
			p := w.start(
				onCreate("a", func(
					_ context.Context, c *handlers.Invocation,
				) error {
					put(working(c), "x", "spec", "id")
					return nil
				}),
				onCreate("b", func(_ context.Context, c *handlers.Invocation) error {
					seen = at(working(c), "spec", "id")
					return nil
				}))
			p.settle()
			w.want("seen", nil, seen)
			w.wantAt("all", nil, "spec", "id")
		}},
		"SubHandlers": {"they see what their handler has patched so far, in copies of their own", func(w *world) {
			var seen []any
			look := func(_ context.Context, c *handlers.Invocation) error {
				seen = append(seen, at(working(c), "spec", "id"))
				put(working(c), "y", "spec", "id")
				return nil
			}
			w.start(onCreate("a", all(patches("x", "spec", "id"), runs(sub("s", look), sub("t", look))))).settle()
			w.want("seen", []any{"x", "x"}, seen)
			w.wantAt("all", "x", "spec", "id")
		}},
		"Transactional": {"a checkpoint does not change what later handlers of the pass see", func(w *world) {
			var seen []any
			look := func(_ context.Context, c *handlers.Invocation) error {
				seen = append(seen, at(working(c), "spec", "id"), at(working(c), "spec", "field"))
				return nil
			}
			p := w.start(
				onCreate("a", patches("x", "spec", "id")), onCreate("b", takes(3*time.Second)), onCreate("c", look),
			)
			done := p.aside()
			after(500 * time.Millisecond)
			w.set("two", "spec", "field")
			synctest.Wait()
			<-done
			w.want("seen", []any{"x", "one"}, seen)
		}},
	})
}

package changes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestConflicts shows how edits of other clients between the read and the write of a pass are merged.
func TestConflicts(t *testing.T) {
	beforeWrite := func(w *harness, number int, change func(write)) {
		w.before = func(r write) error {
			if r.number == number {
				change(r)
			}
			return nil
		}
	}
	run(t, map[string]scenario{
		"Main": {"an edit of a field that handlers do not patch is kept", func(w *harness) {
			p := w.start(onCreate("a", patches("x", "spec", "id")), onUpdate("u", ok))
			beforeWrite(w, 1, func(write) { w.set("two", "spec", "field") })
			_, _ = p.pass()
			w.wantWrites("all", "main 200")
			w.wantAt("all", "two", "spec", "field")
			w.wantAt("all", "x", "spec", "id")
			w.wantHandled("as the handler saw it", "one")
		}},
		"Status": {"a status conflict is resolved by running the closures on the newest version", func(w *harness) {
			w.serveStatus(true)
			w.set([]any{"x"}, "status", "list")
			p := w.start(onCreate("a", appends("a", "status", "list")))
			beforeWrite(w, 1, func(write) { w.set([]any{"x", "y"}, "status", "list") })
			p.settle()
			w.wantWrites("all", "status 409", "status 200", "main 200")
			w.wantAt("all", []any{"x", "y", "a"}, "status", "list")
		}},
		"BetweenTheTwo": {"an edit between the status write and the main write is kept", func(w *harness) {
			w.serveStatus(true)
			w.set([]any{"x"}, "spec", "list")
			p := w.start(onCreate("a", all(appends("a", "spec", "list"), patches("s", "status", "s"))))
			beforeWrite(w, 2, func(write) { w.set([]any{"x", "y"}, "spec", "list") })
			p.settle()
			w.wantAt("all", []any{"x", "y", "a"}, "spec", "list")
			w.wantAt("all", "s", "status", "s")
			w.want("errors", []error(nil), p.errs)
		}},
		"List": {"an item that another client adds to a patched list is kept", func(w *harness) {
			w.set([]any{"x"}, "spec", "list")
			p := w.start(onCreate("a", appends("a", "spec", "list")), onCreate("b", appends("b", "spec", "list")))
			beforeWrite(w, 1, func(write) { w.set([]any{"x", "y"}, "spec", "list") })
			_, _ = p.pass()
			w.wantAt("all", []any{"x", "y", "a", "b"}, "spec", "list")
			w.wantWrites("all", "main 409", "main 200")
		}},
		"Finalizers": {"a finalizer that another client adds is kept", func(w *harness) {
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
		"Endless": {"a conflict that repeats too often ends the pass with an error, and the next pass writes the " +
			"outcome", func(w *harness) {
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
		"WorkingCopy": {"each handler sees the patches and results of the handlers before it", func(w *harness) {
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
		"Transactional": {"edits of other clients that a checkpoint reads stay hidden from later handlers of the " +
			"pass", func(w *harness) {
			var seen []any
			look := func(_ context.Context, c *handlers.Invocation) error {
				seen = append(seen, at(working(c), "spec", "id"), at(working(c), "spec", "field"))
				return nil
			}
			p := w.start(
				onCreate("a", patches("x", "spec", "id")), onCreate("b", takes(3*time.Second)), onCreate("c", look),
			)
			done := p.settleInBackground()
			advanceTime(500 * time.Millisecond)
			w.set("two", "spec", "field")
			synctest.Wait()
			<-done
			w.want("seen", []any{"x", "one"}, seen)
		}},
	})
}

package changes_test

import (
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// copyOf replaces the object with a copy of the given body, with a new uid from the server.
func (w *harness) copyOf(body map[string]any) {
	put(body, "uid-copy", "metadata", "uid")
	put(body, nil, "metadata", "resourceVersion")
	put(body, nil, "metadata", "deletionTimestamp")
	w.create(body)
	w.calls()
	w.drainWrites()
}

// TestCopies shows the handling of objects with the memory of another object: copies, and objects restored from a
// backup (deviation D-bound-memory).
func TestCopies(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"New": {"a copy is created as a new object and bound to its own memory", func(w *harness) {
			registered := []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok), onDelete("d", ok)}
			w.start(registered...).settle()
			w.copyOf(w.stored())
			w.set("two", "spec", "field")
			w.start(registered...).settle()
			w.wantCalls("all", "0s create a")
			w.wantWrites("all", "main 200")
			w.wantHandled("all", "two")
			w.wantAt("all", "uid-copy", "metadata", "annotations", boundToAnnotation)
			w.wantAt("all", "yes", "metadata", "annotations", prefix+"/kopf-managed")
			w.wantClean("all")
		}},
		"ForeignRecords": {"the records of the original do not count for a copy", func(w *harness) {
			registered := []*handlers.Handler{
				onCreate("a", ok), onCreate("b", fails(9, permanentError{})), onCreate("c", fails(1, later)),
				onUpdate("u", ok)}
			_, _ = w.start(registered...).pass()
			w.copyOf(w.stored())
			w.start(onCreate("a", ok), onCreate("b", ok), onCreate("c", ok), onUpdate("u", ok)).settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create c")
			w.wantClean("all")
		}},
		"Unfinished": {"the first own record binds the copy and removes the memory of the original",
			func(w *harness) {
				w.start(onCreate("a", ok)).settle()
				w.copyOf(w.stored())
				p := w.start(onCreate("a", fails(1, later)), onUpdate("u", ok))
				_, _ = p.pass()
				w.want("diff-base", nil, w.annotation(handledAnnotation))
				w.wantAt("bound", "uid-copy", "metadata", "annotations", boundToAnnotation)
				w.wantAt("marker", "yes", "metadata", "annotations", prefix+"/kopf-managed")
				p.settle()
				w.wantCalls("all", "0s create a", "10s create a")
			}},
		"ForeignInterim": {"the interim memory of the original does not count for a copy", func(w *harness) {
			_, _ = w.start(onCreate("a", ok), onCreate("b", fails(9, later))).pass()
			w.copyOf(w.stored())
			w.set("two", "spec", "field")
			p := w.start(onCreate("a", fails(1, later)), onCreate("b", ok, ifLabelled), onUpdate("u", ok))
			_, _ = p.pass()
			w.want("interim", nil, w.annotation(interimAnnotation))
			p.settle()
			w.wantCalls("all", "0s create a", "10s create a")
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"NotOurs": {"annotations of users under our prefix are kept on copies", func(w *harness) {
			w.set("daily", "metadata", "annotations", prefix+"/backup")
			w.start(onCreate("a", ok)).settle()
			w.copyOf(w.stored())
			w.start(onCreate("a", ok)).settle()
			w.wantAt("all", "daily", "metadata", "annotations", prefix+"/backup")
		}},
		"Unmatched": {"a copy that matches no handler is not written", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			w.copyOf(w.stored())
			w.start(onCreate("a", ok, ifLabelled)).settle()
			w.wantWrites("all")
		}},
		"Deleted": {"a copy that is deleted before it is handled runs only its delete handlers", func(w *harness) {
			registered := []*handlers.Handler{onCreate("a", ok), onDelete("d", ok)}
			w.start(registered...).settle()
			w.copyOf(w.stored())
			w.delete()
			w.start(registered...).settle()
			w.wantCalls("all", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Unbound": {"memory without a uid is trusted, and bound by the next write", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			w.set(nil, "metadata", "annotations", boundToAnnotation)
			w.calls()
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			w.wantCalls("noop")
			w.set("two", "spec", "field")
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			w.wantCalls("update", "0s update u")
			w.wantAt("bound now", "uid-1", "metadata", "annotations", boundToAnnotation)
		}},
		"AsKopf": {"without binding, a copy counts as handled, as in Kopf", func(w *harness) {
			p := w.start(onCreate("a", ok))
			p.handling.BoundTo = ""
			p.settle()
			w.wantAt("not bound", nil, "metadata", "annotations", boundToAnnotation)
			w.copyOf(w.stored())
			q := w.start(onCreate("a", ok))
			q.handling.BoundTo = ""
			q.settle()
			w.wantCalls("all")
		}},
	})
}

package changes_test

import (
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// copyOf makes the object a copy of what it is now: all is taken along, but the server gives another uid.
func (w *world) copyOf(body map[string]any) {
	put(body, "uid-copy", "metadata", "uid")
	put(body, nil, "metadata", "resourceVersion")
	put(body, nil, "metadata", "deletionTimestamp")
	w.create(body)
	w.calls()
	w.drainWrites()
}

// TestCopies is about objects that brought the memory of another one along: copied, or restored from a backup
// (deviation D-bound-memory).
func TestCopies(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"New": {"a copy is a new object: it is created, and its memory becomes its own", func(w *world) {
			registered := []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok), onDelete("d", ok)}
			w.start(registered...).settle()
			w.copyOf(w.stored())
			w.set("two", "spec", "field")
			w.start(registered...).settle()
			w.wantCalls("all", "0s create a")
			w.wantWrites("all", "main 200")
			w.wantHandled("all", "two")
			w.wantAt("all", "uid-copy", "metadata", "annotations", boundTo)
			w.wantAt("all", "yes", "metadata", "annotations", prefix+"/kopf-managed")
			w.wantClean("all")
		}},
		"ForeignRecords": {"the progress of the other does not count, be it success, failure or delay", func(w *world) {
			registered := []*handlers.Handler{
				onCreate("a", ok), onCreate("b", fails(9, permanentError{})), onCreate("c", fails(1, later)),
				onUpdate("u", ok)}
			_, _ = w.start(registered...).pass()
			w.copyOf(w.stored())
			w.start(onCreate("a", ok), onCreate("b", ok), onCreate("c", ok), onUpdate("u", ok)).settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create c")
			w.wantClean("all")
		}},
		"Unfinished": {"the first record of its own binds the copy, and drops what was foreign at once",
			func(w *world) {
				w.start(onCreate("a", ok)).settle()
				w.copyOf(w.stored())
				p := w.start(onCreate("a", fails(1, later)), onUpdate("u", ok))
				_, _ = p.pass()
				w.want("diff-base", nil, w.annotation(handled))
				w.wantAt("bound", "uid-copy", "metadata", "annotations", boundTo)
				w.wantAt("marker", "yes", "metadata", "annotations", prefix+"/kopf-managed")
				p.settle()
				w.wantCalls("all", "0s create a", "10s create a")
			}},
		"ForeignInterim": {"what a handler of the other saw is not what one of this saw", func(w *world) {
			_, _ = w.start(onCreate("a", ok), onCreate("b", fails(9, later))).pass()
			w.copyOf(w.stored())
			w.set("two", "spec", "field")
			p := w.start(onCreate("a", fails(1, later)), onCreate("b", ok, labelled), onUpdate("u", ok))
			_, _ = p.pass()
			w.want("interim", nil, w.annotation(interim))
			p.settle()
			w.wantCalls("all", "0s create a", "10s create a")
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"NotOurs": {"annotations of users under our prefix are theirs, on copies as well", func(w *world) {
			w.set("daily", "metadata", "annotations", prefix+"/backup")
			w.start(onCreate("a", ok)).settle()
			w.copyOf(w.stored())
			w.start(onCreate("a", ok)).settle()
			w.wantAt("all", "daily", "metadata", "annotations", prefix+"/backup")
		}},
		"Unmatched": {"a copy that nobody wants is left alone", func(w *world) {
			w.start(onCreate("a", ok)).settle()
			w.copyOf(w.stored())
			w.start(onCreate("a", ok, labelled)).settle()
			w.wantWrites("all")
		}},
		"Deleted": {"a copy that is deleted at once is deleted as an object never handled", func(w *world) {
			registered := []*handlers.Handler{onCreate("a", ok), onDelete("d", ok)}
			w.start(registered...).settle()
			w.copyOf(w.stored())
			w.delete()
			w.start(registered...).settle()
			w.wantCalls("all", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Unbound": {"memory without a uid is trusted: it may be from before", func(w *world) {
			w.start(onCreate("a", ok)).settle()
			w.set(nil, "metadata", "annotations", boundTo)
			w.calls()
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			w.wantCalls("noop")
			w.set("two", "spec", "field")
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			w.wantCalls("update", "0s update u")
			w.wantAt("bound now", "uid-1", "metadata", "annotations", boundTo)
		}},
		"AsKopf": {"without binding, copies are taken for what they were copied from, as in Kopf", func(w *world) {
			p := w.start(onCreate("a", ok))
			p.handling.BoundTo = ""
			p.settle()
			w.wantAt("not bound", nil, "metadata", "annotations", boundTo)
			w.copyOf(w.stored())
			q := w.start(onCreate("a", ok))
			q.handling.BoundTo = ""
			q.settle()
			w.wantCalls("all")
		}},
	})
}

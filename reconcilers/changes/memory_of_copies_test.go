package changes_test

import (
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// bindToAnother binds the memory of the object to another object.
func (w *harness) bindToAnother() { w.set("uid-other", "metadata", "annotations", boundToAnnotation) }

// TestMemoryOfCopies shows which memory of another object is replaced or removed, and which values are kept.
func TestMemoryOfCopies(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Parts": {"the records of sub-handlers of the original are removed with that of their parent",
			func(w *harness) {
				_, _ = w.start(onCreate("a", runs(sub("s", fails(1, later))))).pass()
				w.want("success of the original's sub-handler", false, w.record("a.s", "success"))
				w.copyOf(w.stored())
				w.start(onCreate("a", ok)).settle()
				w.wantCalls("all", "0s create a")
				w.wantClean("all")
			}},
		"MappingInPlace": {"unreadable memory on a copy is ignored and replaced", func(w *harness) {
			w.set(map[string]any{"x": "y"}, "status", "kopf", inStatus)
			w.bindToAnother()
			p := w.startWith(stores{diffbase.Status{}, annotationStores.progress}, onCreate("a", ok))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.want("errors", []error(nil), p.errs)
			w.wantAt("all", `{"spec":{"field":"one"}}`, "status", "kopf", inStatus)
		}},
		"ValueOnTheWay": {"a user's value in the path of the memory is kept", func(w *harness) {
			w.set("text", "status", "memory")
			w.bindToAnother()
			own := stores{diffbase.Status{Field: diff.Path{"status", "memory", "essence"}}, annotationStores.progress}
			_, _ = w.startWith(own, onCreate("a", fails(1, later))).pass()
			w.want("attempts", int64(1), w.record("a", "retries"))
			w.wantAt("bound", "uid-1", "metadata", "annotations", boundToAnnotation)
			w.wantAt("the value of the user", "text", "status", "memory")
		}},
		"ResultInItsPlace": {"a result can replace a record of the original at the same path", func(w *harness) {
			record := map[string]any{"purpose": "create", "retries": int64(1), "delayed": "9999-01-01T00:00:00Z"}
			w.set(record, "status", "kopf", "progress", "kopf")
			w.bindToAnother()
			p := w.startWith(stores{annotationStores.diffbase, progress.Smart{Prefix: prefix}},
				onCreate("kopf", returns("r")))
			p.settle()
			w.wantCalls("all", "0s create kopf")
			w.want("errors", []error(nil), p.errs)
			w.wantAt("all", "r", "status", "kopf")
		}},
	})
}

// TestUnbinding shows that nothing of the engine is left on an object that is deleted before its first cause has
// ended, while others hold it.
func TestUnbinding(t *testing.T) {
	held := func(w *harness) { w.set([]any{"others/finalizer"}, "metadata", "finalizers") }
	run(t, map[string]scenario{
		"Own": {"the binding is removed with the last record", func(w *harness) {
			held(w)
			p := w.start(onCreate("a", fails(1, temporaryError{delay: time.Hour})))
			_, _ = p.pass()
			w.wantAt("begun", "uid-1", "metadata", "annotations", boundToAnnotation)
			w.delete()
			_, _ = p.pass()
			w.wantAt("deleted", nil, "metadata", "annotations", boundToAnnotation)
			w.wantClean("deleted")
			w.drainWrites()
			_, _ = p.pass()
			w.wantWrites("once")
		}},
		"Handled": {"the last-handled configuration and its binding are kept", func(w *harness) {
			held(w)
			p := w.start(onCreate("a", ok))
			p.settle()
			w.delete()
			p.settle()
			w.wantHandled("deleted", "one")
			w.wantAt("deleted", "uid-1", "metadata", "annotations", boundToAnnotation)
		}},
		"Foreign": {"memory copied from another object is not changed by a deletion", func(w *harness) {
			held(w)
			w.start(onCreate("a", ok)).settle()
			w.bindToAnother()
			w.delete()
			w.drainWrites()
			_, _ = w.start(onCreate("a", ok)).pass()
			w.wantAt("deleted", "uid-other", "metadata", "annotations", boundToAnnotation)
			w.wantWrites("deleted")
		}},
	})
}

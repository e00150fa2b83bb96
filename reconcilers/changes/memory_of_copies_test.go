package changes_test

import (
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// foreign makes the memory of the object that of another one.
func (w *world) foreign() { w.set("uid-other", "metadata", "annotations", boundTo) }

// TestMemoryOfCopies is about where the memory of another object stands, and what is not part of it.
func TestMemoryOfCopies(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Parts": {"the progress of sub-handlers is removed with that of their handler", func(w *world) {
			_, _ = w.start(onCreate("a", runs(sub("s", fails(1, later))))).pass()
			w.want("success of the other's part", false, w.record("a.s", "success"))
			w.copyOf(w.stored())
			w.start(onCreate("a", ok)).settle()
			w.wantCalls("all", "0s create a")
			w.wantClean("all")
		}},
		"MappingInPlace": {"what cannot be read does not matter on a copy, whatever it is", func(w *world) {
			w.set(map[string]any{"x": "y"}, "status", "kopf", inStatus)
			w.foreign()
			p := w.startWith(stores{diffbase.Status{}, annotated.progress}, onCreate("a", ok))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.want("errors", []error(nil), p.errs)
			w.wantAt("all", `{"spec":{"field":"one"}}`, "status", "kopf", inStatus)
		}},
		"ValueOnTheWay": {"a value of the user's on the way to where memory would be is none of ours", func(w *world) {
			w.set("text", "status", "memory")
			w.foreign()
			own := stores{diffbase.Status{Field: diff.Path{"status", "memory", "essence"}}, annotated.progress}
			_, _ = w.startWith(own, onCreate("a", fails(1, later))).pass()
			w.want("attempts", int64(1), w.record("a", "retries"))
			w.wantAt("bound", "uid-1", "metadata", "annotations", boundTo)
			w.wantAt("the user's", "text", "status", "memory")
		}},
		"ResultInItsPlace": {"a result may take the place of what is to be removed", func(w *world) {
			record := map[string]any{"purpose": "create", "retries": int64(1), "delayed": "9999-01-01T00:00:00Z"}
			w.set(record, "status", "kopf", "progress", "kopf")
			w.foreign()
			p := w.startWith(stores{annotated.diffbase, progress.Smart{Prefix: prefix}}, onCreate("kopf", returns("r")))
			p.settle()
			w.wantCalls("all", "0s create kopf")
			w.want("errors", []error(nil), p.errs)
			w.wantAt("all", "r", "status", "kopf")
		}},
	})
}

// TestUnbinding is about objects that are deleted before they were handled to the end, while others hold them: nothing
// of ours is left on them.
func TestUnbinding(t *testing.T) {
	held := func(w *world) { w.set([]any{"others/finalizer"}, "metadata", "finalizers") }
	run(t, map[string]scenario{
		"Own": {"whose progress it was does not matter without any progress", func(w *world) {
			held(w)
			p := w.start(onCreate("a", fails(1, temporaryError{delay: time.Hour})))
			_, _ = p.pass()
			w.wantAt("begun", "uid-1", "metadata", "annotations", boundTo)
			w.delete()
			_, _ = p.pass()
			w.wantAt("deleted", nil, "metadata", "annotations", boundTo)
			w.wantClean("deleted")
			w.drainWrites()
			_, _ = p.pass()
			w.wantWrites("once")
		}},
		"Handled": {"what was handled last stays, and so does whose it is", func(w *world) {
			held(w)
			p := w.start(onCreate("a", ok))
			p.settle()
			w.delete()
			p.settle()
			w.wantHandled("deleted", "one")
			w.wantAt("deleted", "uid-1", "metadata", "annotations", boundTo)
		}},
		"Foreign": {"what was copied from another object stays what it is", func(w *world) {
			held(w)
			w.start(onCreate("a", ok)).settle()
			w.foreign()
			w.delete()
			w.drainWrites()
			_, _ = w.start(onCreate("a", ok)).pass()
			w.wantAt("deleted", "uid-other", "metadata", "annotations", boundTo)
			w.wantWrites("deleted")
		}},
	})
}

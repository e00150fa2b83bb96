package changes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// lastAppliedAnnotation is an annotation outside of the essence.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// fillAnnotations fills the annotations until the given number of bytes is left. A negative number means that later
// writes must remove that many bytes.
func (w *harness) fillAnnotations(room int) {
	w.set(strings.Repeat("y", annotationsLimit-room-w.size()-len(lastAppliedAnnotation)), "metadata", "annotations",
		lastAppliedAnnotation)
}

// TestLastByte shows that memory that fits to the last byte is stored in full.
func TestLastByte(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Updated": {"an essence that fits exactly is stored without a log line", func(w *harness) {
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.fillAnnotations(0)
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s create a", "0s update u")
			w.wantHandled("all", "two")
			w.want("size", annotationsLimit, w.size())
			w.want("logged", false, w.hasLogged("too large"))
		}},
		"Open": {"the interim memory is not rewritten for a second success", func(w *harness) {
			half := func() *process {
				p := w.start(onCreate("a", fails(1, later)), onCreate("b", ok), onCreate("c", fails(9, later)))
				_, _ = p.pass()
				time.Sleep(10 * time.Second)
				return p
			}
			p := half()
			before := w.size()
			_, _ = p.pass()
			grown := w.size() - before
			w.create(object())
			p = half()
			w.fillAnnotations(grown)
			_, err := p.pass()
			w.want("error", nil, err)
			w.want("size", annotationsLimit, w.size())
			w.want("success of a", true, w.record("a", "success"))
			w.wantBeside("open", "one", "b", "success")
		}},
		"Deleted": {"the last write of a deletion uses the room of the removed records", func(w *harness) {
			p := w.start(onCreate("a", ok), onDelete("d", fails(1, later)))
			p.settle()
			w.set([]any{finalizer, "others/finalizer"}, "metadata", "finalizers")
			w.set("two", "spec", "field")
			w.delete()
			_, _ = p.pass()
			name := prefix + "/d"
			w.fillAnnotations(-len(name) - len(w.at("metadata", "annotations", name).(string)))
			p.settle()
			w.wantCalls("all", "0s create a", "0s delete d", "10s delete d")
			w.wantAt("all", []any{"others/finalizer"}, "metadata", "finalizers")
			w.wantHandled("all", "two")
			w.want("size", annotationsLimit, w.size())
		}},
	})
}

// TestDeletionsWithoutRoom shows that a deletion completes even if its memory cannot be stored.
func TestDeletionsWithoutRoom(t *testing.T) {
	run(t, map[string]scenario{
		"Full": {"a diff-base storage without room does not block a deletion", func(w *harness) {
			w.start(onCreate("a", ok), onDelete("d", ok)).settle()
			w.set([]any{finalizer, "others/finalizer"}, "metadata", "finalizers")
			w.set("two", "spec", "field")
			w.delete()
			p := w.startWith(stores{full{diffbase.Annotations{Prefix: prefix}}, annotationStores.progress},
				onDelete("d", ok))
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a", "0s delete d")
			w.wantAt("all", []any{"others/finalizer"}, "metadata", "finalizers")
			w.wantHandled("as before", "one")
		}},
		"FullOfRecords": {"a progress storage without room does not block a deletion, and attempts are counted in " +
			"the process", func(w *harness) {
			own := fullProgress{progress.Annotations{Prefix: prefix}}
			p := w.startWith(
				stores{annotationStores.diffbase, own},
				onDelete("d", fails(1, temporaryError{delay: 10 * time.Second}), retries(2)),
			)
			p.settle()
			w.delete()
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s delete d", "10s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Dropped": {"an API server that drops the memory with the last write causes no error", func(w *harness) {
			p := w.startWith(statusStores, onCreate("a", ok), onDelete("d", ok))
			p.settle()
			w.set("two", "spec", "field")
			w.delete()
			w.webhook = func(body map[string]any) { put(body, nil, "status") }
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
	})
}

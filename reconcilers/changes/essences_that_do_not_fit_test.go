package changes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// applied is an annotation that is no part of what users say.
const applied = "kubectl.kubernetes.io/last-applied-configuration"

// crowd leaves so many bytes in the annotations. That many less than none may be taken away by what follows.
func (w *world) crowd(room int) {
	w.set(strings.Repeat("y", annotationsLimit-room-w.size()-len(applied)), "metadata", "annotations", applied)
}

// TestLastByte is about essences that fit into the annotations to the last byte.
func TestLastByte(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Updated": {"what fits is stored by its values, and there is nothing to tell of", func(w *world) {
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.crowd(0)
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s create a", "0s update u")
			w.wantHandled("all", "two")
			w.want("size", annotationsLimit, w.size())
			w.want("told", false, w.hasLogged("too large"))
		}},
		"Open": {"what stands beside one success is not written anew for another one", func(w *world) {
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
			w.crowd(grown)
			_, err := p.pass()
			w.want("error", nil, err)
			w.want("size", annotationsLimit, w.size())
			w.want("success of a", true, w.record("a", "success"))
			w.wantBeside("open", "one", "b", "success")
		}},
		"Deleted": {"at the end, it is the records of the deletion that make the room", func(w *world) {
			p := w.start(onCreate("a", ok), onDelete("d", fails(1, later)))
			p.settle()
			w.set([]any{finalizer, "others/finalizer"}, "metadata", "finalizers")
			w.set("two", "spec", "field")
			w.delete()
			_, _ = p.pass()
			name := prefix + "/d"
			w.crowd(-len(name) - len(w.at("metadata", "annotations", name).(string)))
			p.settle()
			w.wantCalls("all", "0s create a", "0s delete d", "10s delete d")
			w.wantAt("all", []any{"others/finalizer"}, "metadata", "finalizers")
			w.wantHandled("all", "two")
			w.want("size", annotationsLimit, w.size())
		}},
	})
}

// TestDeletionsWithoutRoom is about objects that are going, with memory that cannot be kept: they go nevertheless.
func TestDeletionsWithoutRoom(t *testing.T) {
	run(t, map[string]scenario{
		"Full": {"a storage may have its reasons", func(w *world) {
			w.start(onCreate("a", ok), onDelete("d", ok)).settle()
			w.set([]any{finalizer, "others/finalizer"}, "metadata", "finalizers")
			w.set("two", "spec", "field")
			w.delete()
			p := w.startWith(stores{full{diffbase.Annotations{Prefix: prefix}}, annotated.progress}, onDelete("d", ok))
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a", "0s delete d")
			w.wantAt("all", []any{"others/finalizer"}, "metadata", "finalizers")
			w.wantHandled("as before", "one")
		}},
		"FullOfRecords": {"so with records, of which the process knows as long as it lives", func(w *world) {
			own := fullProgress{progress.Annotations{Prefix: prefix}}
			p := w.startWith(
				stores{annotated.diffbase, own},
				onDelete("d", fails(1, temporaryError{delay: 10 * time.Second}), retries(2)),
			)
			p.settle()
			w.delete()
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s delete d", "10s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Dropped": {"what an API server drops in its last answer is nobody's loss", func(w *world) {
			p := w.startWith(statuses, onCreate("a", ok), onDelete("d", ok))
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

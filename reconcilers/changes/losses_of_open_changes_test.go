package changes_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// passEachMinute makes one pass in each of the next minutes.
func (p *process) passEachMinute(minutes int) {
	for range minutes {
		time.Sleep(time.Minute)
		_, _ = p.pass()
	}
}

// TestMemoryLostInTheMiddle shows that all memory of unfinished handlers is restored if another client removes it:
// with only a part of it, finished handlers would be called again, or an update would become a creation.
func TestMemoryLostInTheMiddle(t *testing.T) {
	later := temporaryError{delay: time.Minute}
	run(t, map[string]scenario{
		"Create": {"a successful create handler is not called again after its memory was removed", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", fails(3, later)))
			_, _ = p.pass()
			w.stripMetadata()
			p.passEachMinute(6)
			w.want("calls", []string{
				"0s create a", "0s create b", "1m0s create b", "2m0s create b", "3m0s create b",
			}, w.calls())
		}},
		"Update": {"an update continues after its memory was removed, and does not become a creation",
			func(w *harness) {
				p := w.start(onCreate("c", ok), onUpdate("a", ok), onUpdate("b", fails(3, later)))
				p.settle()
				w.calls()
				w.set("two", "spec", "field")
				_, _ = p.pass()
				w.stripMetadata()
				p.passEachMinute(6)
				w.want("calls", []string{
					"0s update a", "0s update b", "1m0s update b", "2m0s update b", "3m0s update b",
				}, w.calls())
			}},
		"Delete": {"a deletion continues after its memory was removed", func(w *harness) {
			p := w.start(onDelete("a", ok), onDelete("b", fails(3, later)))
			p.settle()
			w.delete()
			_, _ = p.pass()
			w.edit(func(body map[string]any) { put(body, nil, "metadata", "annotations") })
			p.passEachMinute(6)
			w.want("calls", []string{
				"0s delete a", "0s delete b", "1m0s delete b", "2m0s delete b", "3m0s delete b",
			}, w.calls())
		}},
		"Resume": {"a handled object is not created again if its memory was removed in a resume", func(w *harness) {
			w.start(onCreate("c", ok), onResume("r", ok)).settle()
			p := w.start(onCreate("c", ok), onResume("r", fails(1, later)))
			p.memory.Initial = true
			_, _ = p.pass()
			w.stripMetadata()
			_, _ = p.pass()
			p.passEachMinute(1)
			w.calls()
			w.start(onCreate("c", ok), onResume("r", ok)).settle()
			w.want("calls", []string(nil), w.calls())
		}},
		"Unwritten": {"an outcome that could not be written is written after the memory was removed", func(w *harness) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok))
			p.settle()
			w.calls()
			w.set("two", "spec", "field")
			w.before = func(write) error { return memapi.NewRefusal(500, "broken") }
			_, _ = p.pass()
			w.before = nil
			w.stripMetadata()
			p.settle()
			w.want("calls", 1, len(w.calls()))
		}},
		"Fight": {"a finalizer that is removed repeatedly is restored with growing delays", func(w *harness) {
			p := w.start(onCreate("c", fails(99, temporaryError{delay: time.Hour})), onDelete("d", ok))
			_, _ = p.pass()
			w.drainWrites()
			for range 200 {
				w.stripMetadata()
				time.Sleep(100 * time.Millisecond)
				_, _ = p.pass()
			}
			if n := len(w.drainWrites()); n > 6 {
				w.t.Errorf("want at most 6 writes in 20 s, got %d", n)
			}
		}},
	})
}

// TestOwnPatchesThatAreNotKept shows that patches that the API server does not keep are not part of the last-handled
// configuration; otherwise each later event would be an update.
func TestOwnPatchesThatAreNotKept(t *testing.T) {
	heartbeats := func(w *harness, p *process) {
		p.settle()
		for _, v := range []string{"1", "2", "3"} {
			w.set(v, "status", "heartbeat")
			p.settle()
		}
		w.want("calls", 1, len(w.calls()))
	}
	run(t, map[string]scenario{
		"Refused": {"a refused patch of a permanently failed handler causes no updates", func(w *harness) {
			w.schema = onlyStatusNumbers
			fn := all(patches("big", "status", "size"), patches("done", "metadata", "annotations", "sync"))
			p := w.start(onUpdate("h", fn, retries(1), when(isPressed)), onCreate("h", fn, retries(1), when(isPressed)))
			w.set("update", "metadata", "annotations", "sync")
			heartbeats(w, p)
		}},
		"Forbidden": {"a patch of a forbidden status causes no updates", func(w *harness) {
			w.serveStatus(true)
			w.before = func(one write) error {
				if one.status {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "obj", errors.New("no"))
				}
				return nil
			}
			filter := when(func(c *cause.Cause) bool { return at(c.Body(), "status", "phase") == nil })
			fn := patches("done", "status", "phase")
			p := w.start(onCreate("h", fn, filter), onUpdate("h", fn, filter))
			p.handling.Lens.ExtraPaths = []diff.Path{{"status", "phase"}}
			heartbeats(w, p)
		}},
	})
}

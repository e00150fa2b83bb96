package changes_test

import (
	"testing"
	"time"
)

// TestSuperseding shows the handling of causes that a deletion supersedes.
func TestSuperseding(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"CreateByDelete": {"a deletion does not wait for an unfinished creation", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", fails(9, later)), onDelete("d", fails(1, later)))
			_, _ = p.pass()
			w.delete()
			_, _ = p.pass()
			w.want("record of a", nil, w.annotation(prefix+"/a"))
			w.want("record of b", nil, w.annotation(prefix+"/b"))
			w.want("record of d", "delete", w.record("d", "purpose"))
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s delete d", "10s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"UpdateByDelete": {"a deletion does not wait for an unfinished update", func(w *harness) {
			p := w.start(onUpdate("u", fails(9, later)), onDelete("d", ok))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s update u", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"SharedDelay": {"a handler of both causes keeps its delay and its attempts", func(w *harness) {
			p := w.start(onCreate("s", fails(1, later)), onDelete("s", ok))
			_, _ = p.pass()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create s", "10s delete s")
		}},
		"SharedCount": {"a superseding cause does not reset the attempts of a shared handler", func(w *harness) {
			p := w.start(onCreate("s", fails(9, later), retries(3)), onDelete("s", fails(9, later), retries(3)))
			_, _ = p.pass()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create s", "10s delete s", "20s delete s")
		}},
		"SharedSuccess": {"a success for a superseded cause does not count for the deletion", func(w *harness) {
			p := w.start(onCreate("s", ok), onCreate("b", fails(9, later)), onDelete("s", ok))
			_, _ = p.pass()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create s", "0s create b", "0s delete s")
		}},
		"SharedKept": {"the record of a shared handler survives the removal of the others", func(w *harness) {
			p := w.start(onCreate("s", fails(1, temporaryError{time.Minute})), onCreate("b", fails(9, later)),
				onDelete("s", ok), onDelete("d", fails(1, later)))
			_, _ = p.pass()
			w.delete()
			_, _ = p.pass()
			w.want("record of s", int64(1), w.record("s", "retries"))
			p.kill()
			w.start(onDelete("s", ok), onDelete("d", ok)).settle()
			w.wantCalls("all", "0s create s", "0s create b", "0s delete d", "10s delete d", "1m0s delete s")
		}},
	})
}

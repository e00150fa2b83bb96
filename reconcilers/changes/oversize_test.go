package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// TestOversize shows how objects that are too large for their annotations are stored (deviation D-digests).
func TestOversize(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	later := temporaryError{delay: 10 * time.Second}
	large := func(w *harness) { w.set(strings.Repeat("x", annotationsLimit), "spec", "blob") }
	run(t, map[string]scenario{
		"Created": {"the creation of a large object is closed with a digest and logged", func(w *harness) {
			large(w)
			p := w.start(onCreate("a", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.want("errors", []error(nil), p.errs)
			if !w.hasLogged("too large") {
				w.t.Errorf("the digest is not logged: %v", w.logLines)
			}
			w.drainWrites()
			p.settle()
			w.wantWrites("afterwards")
		}},
		"Restarted": {"a large object is unchanged after a restart", func(w *harness) {
			large(w)
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			p := w.start(onCreate("a", ok), onUpdate("u", ok), onResume("r", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s create a", "0s resume r")
		}},
		"Updated": {"an update of a digest has the path of the change, but no old value", func(w *harness) {
			large(w)
			var seen diff.Diff
			var old any
			p := w.start(onCreate("a", ok), onUpdate("u", func(_ context.Context, c *handlers.Invocation) error {
				seen, old = c.Cause.Diff, at(cause.WithoutHidden(c.Cause.Old), "spec", "field")
				return nil
			}))
			p.settle()
			w.set("two", "spec", "field")
			p.settle()
			p.settle()
			w.wantCalls("all", "0s create a", "0s update u")
			w.want("diff", diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "field"}}}, seen)
			w.want("old", nil, old)
		}},
		"ManyValues": {"if not even the digests of all values fit, one digest of the whole object shows only that " +
			"it has changed", func(w *harness) {
			many := map[string]any{}
			for i := range 20_000 {
				many[fmt.Sprint("value", i)] = "x"
			}
			w.set(many, "spec", "many")
			var old diffbase.Essence
			p := w.start(onCreate("a", ok), onUpdate("u", func(_ context.Context, c *handlers.Invocation) error {
				old = c.Cause.Old
				return nil
			}))
			p.settle()
			w.set("two", "spec", "many", "value1")
			p.settle()
			p.settle()
			w.wantCalls("all", "0s create a", "0s update u")
			w.want("old", diffbase.Essence{}, old)
			w.want("stored", 1, len(w.annotation(handledAnnotation).(map[string]any)))
		}},
		"Shrunk": {"a large object that shrinks is stored in full again", func(w *harness) {
			large(w)
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.set(nil, "spec", "blob")
			p.settle()
			w.wantHandled("all", "one")
			w.wantCalls("all", "0s create a", "0s update u")
		}},
		"Interim": {"interim memory of a large object is a digest, too", func(w *harness) {
			large(w)
			registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok)}
			p := w.start(registered...)
			p.step()
			p.kill()
			w.start(registered...).settle()
			w.wantCalls("all", "0s create a", "0s create b", "10s create b")
			w.wantClean("all")
		}},
		"InterimEdited": {"an edit of a large object after the first success is handled as an update",
			func(w *harness) {
				large(w)
				registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok)}
				p := w.start(registered...)
				p.step()
				p.kill()
				w.set("two", "spec", "field")
				w.start(registered...).settle()
				w.wantCalls("all", "0s create a", "0s create b", "10s create b", "10s update u")
				w.wantClean("all")
			}},
		"Reverted": {"a revert of a large object after a success is noticed by its digest", func(w *harness) {
			large(w)
			p := w.start(onUpdate("u", ok), onUpdate("v", fails(1, later)))
			p.settle()
			w.set("two", "spec", "field")
			p.step()
			w.set("one", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s update u", "0s update v", "0s update u", "0s update v")
			w.wantClean("all")
		}},
		"NoRoomAtAll": {"a deletion completes without memory if the annotations of others leave no room for a " +
			"digest", func(w *harness) {
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			p.settle()
			w.set(nil, "metadata", "annotations", handledAnnotation)
			room := annotationsLimit - len("others")
			for key, value := range at(w.stored(), "metadata", "annotations").(map[string]any) {
				room -= len(key) + len(value.(string))
			}
			w.set(strings.Repeat("y", room), "metadata", "annotations", "others")
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create a", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"HalfOfTheRoom": {"an essence that fits only once is updated without an error", func(w *harness) {
			w.set(strings.Repeat("x", annotationsLimit*6/10), "spec", "blob")
			p := w.start(onCreate("a", ok), onUpdate("u", ok), onUpdate("v", fails(1, later)))
			p.settle()
			w.wantHandled("creation", "one")
			w.set("two", "spec", "field")
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a", "0s update u", "0s update v", "10s update v")
			w.wantHandled("update", "two")
			w.wantClean("update")
		}},
		"CrowdedByOthers": {"an object without room because of annotations of others is handled once",
			func(w *harness) {
				w.set(strings.Repeat("x", annotationsLimit*6/10), "spec", "blob")
				w.set(
					strings.Repeat("y", annotationsLimit/2), "metadata", "annotations",
					"kubectl.kubernetes.io/last-applied-configuration",
				)
				p := w.start(onCreate("a", ok), onUpdate("u", ok))
				p.settle()
				w.want("errors", []error(nil), p.errs)
				p.settle()
				w.wantCalls("all", "0s create a")
			}},
	})
}

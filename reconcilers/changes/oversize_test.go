package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// TestOversize is about objects that are larger than what annotations can hold (deviation D-digests).
func TestOversize(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	later := temporaryError{delay: 10 * time.Second}
	large := func(w *world) { w.set(strings.Repeat("x", annotationsLimit), "spec", "blob") }
	run(t, map[string]scenario{
		"Created": {"the creation is closed with a digest, and logged", func(w *world) {
			large(w)
			p := w.start(onCreate("a", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.want("errors", []error(nil), p.errs)
			if !w.hasLogged("too large") {
				w.t.Errorf("it is not logged: %v", w.logged)
			}
			w.drainWrites()
			p.settle()
			w.wantWrites("afterwards")
		}},
		"Restarted": {"a restart does not take it for changed", func(w *world) {
			large(w)
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			p := w.start(onCreate("a", ok), onUpdate("u", ok), onResume("r", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s create a", "0s resume r")
		}},
		"Updated": {"a change is seen where it is; what there was before is not known", func(w *world) {
			large(w)
			var seen diff.Diff
			var old any
			p := w.start(onCreate("a", ok), onUpdate("u", func(_ context.Context, c *handlers.Invocation) error {
				seen, old = c.Cause.Diff, at(cause.Bare(c.Cause.Old), "spec", "field")
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
		"ManyValues": {"where not even the digests of all values fit, there is one of the whole: that it changed is " +
			"all that is seen", func(w *world) {
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
			w.want("stored", 1, len(w.annotation(handled).(map[string]any)))
		}},
		"Shrunk": {"an object that became small is remembered as a whole again", func(w *world) {
			large(w)
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.set(nil, "spec", "blob")
			p.settle()
			w.wantHandled("all", "one")
			w.wantCalls("all", "0s create a", "0s update u")
		}},
		"Interim": {"what the first successful handler saw may be a digest, too", func(w *world) {
			large(w)
			registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok)}
			p := w.start(registered...)
			p.step()
			p.kill()
			w.start(registered...).settle()
			w.wantCalls("all", "0s create a", "0s create b", "10s create b")
			w.wantClean("all")
		}},
		"InterimEdited": {"an edit after the first success follows as an update", func(w *world) {
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
		"Reverted": {"a revert after a success is seen by digests as well", func(w *world) {
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
		"NoRoomAtAll": {"where the annotations of others leave no room, even a digest would be refused: the " +
			"deletion goes without", func(w *world) {
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			p.settle()
			w.set(nil, "metadata", "annotations", handled)
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
		"HalfOfTheRoom": {"an essence that fits once, but not twice", func(w *world) {
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
		"CrowdedByOthers": {"the annotations of others take room as well", func(w *world) {
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

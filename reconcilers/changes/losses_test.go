package changes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// strip removes all annotations and finalizers, as a controller does that replaces the whole metadata.
func (w *world) strip() {
	w.edit(func(body map[string]any) {
		put(body, nil, "metadata", "annotations")
		put(body, nil, "metadata", "finalizers")
	})
}

// copyMemory replaces the annotations by those of another object, as a controller does that copies them.
func (w *world) copyMemory() {
	w.set("of-another", "metadata", "annotations", boundTo)
	w.set(`{"spec":{"field":"of another"}}`, "metadata", "annotations", prefix+"/last-handled-configuration")
}

// What another client removes from the object is known to the process (deviation D-lost-memory).
func TestLostMemory(t *testing.T) {
	later := temporaryError{delay: time.Minute}
	run(t, map[string]scenario{
		"Stripped": {"the object is not created again, and has its memory back", func(w *world) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.calls()
			w.strip()
			p.settle()
			w.wantCalls("stripped")
			w.wantHandled("stripped", "one")
			w.wantAt("held again", []any{finalizer}, "metadata", "finalizers")
			w.want("logged", true, w.hasLogged("Another client has removed"))
		}},
		"StrippedWithAnEdit": {"an update stays an update", func(w *world) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.calls()
			w.strip()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("edited", "0s update u")
			w.wantHandled("edited", "two")
		}},
		"Copied": {"a copy of another object's annotations is no memory, and no creation", func(w *world) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok))
			p.settle()
			w.calls()
			w.copyMemory()
			p.settle()
			w.wantCalls("copied")
			w.wantApart("copied", `{"spec":{"field":"one"}}`)
		}},
		"OneAnnotation": {"whoever removes the last-handled configuration alone wants a creation", func(w *world) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.calls()
			w.set(nil, "metadata", "annotations", prefix+"/last-handled-configuration")
			p.settle()
			w.wantCalls("removed", "0s create c")
		}},
		"Retries": {"the attempts are counted on", func(w *world) {
			p := w.start(onCreate("c", fails(99, later), retries(3)))
			for range 10 {
				_, _ = p.pass()
				w.strip()
				time.Sleep(time.Minute)
			}
			w.want("attempts", 3, len(w.calls()))
		}},
		"RetriesOfADeletion": {"so are those of a deletion", func(w *world) {
			p := w.start(onDelete("d", fails(99, later), retries(3)))
			p.settle()
			w.delete()
			for range 10 {
				_, _ = p.pass()
				if w.stored() != nil {
					w.edit(func(body map[string]any) { put(body, nil, "metadata", "annotations") })
				}
				time.Sleep(time.Minute)
			}
			w.want("attempts", 3, len(w.calls()))
			w.want("gone", map[string]any(nil), w.stored())
		}},
		"Restarted": {"another process knows nothing of it", func(w *world) {
			w.start(onCreate("c", ok)).settle()
			w.strip()
			w.calls()
			w.start(onCreate("c", ok)).settle()
			w.wantCalls("second life", "0s create c")
		}},
	})
}

// Two controllers that undo each other's writes do so less and less often.
func TestLossesAgainAndAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	run(t, map[string]scenario{"Stripped": {"the delay doubles up to ten minutes", func(w *world) {
		p := w.start(onCreate("c", ok), onDelete("d", ok))
		p.settle()
		w.calls()
		w.drainWrites()
		losses := 0
		for range 3000 {
			w.strip()
			time.Sleep(100 * time.Millisecond)
			next, err := p.pass()
			if err != nil {
				w.t.Fatal(err)
			}
			if next.Lost {
				losses++
			}
		}
		w.wantCalls("all the time")
		lines := strings.Count(strings.Join(w.logged, "\n"), "Another client has removed")
		writes := len(w.drainWrites())
		w.want("losses, lines", fmt.Sprint(9, 9), fmt.Sprint(losses, lines))
		if writes > 2*losses {
			w.t.Errorf("%d writes of 3000 losses", writes)
		}
		time.Sleep(time.Hour)
		p.settle()
		w.want("remembered", true, p.memory.Handled.Held)
		time.Sleep(time.Hour)
		_, _ = p.pass()
		w.want("idle in the end", true, p.memory.Idle())
	}}})
}

package changes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// stripMetadata removes all annotations and finalizers, like a client that replaces the whole metadata.
func (w *harness) stripMetadata() {
	w.edit(func(body map[string]any) {
		put(body, nil, "metadata", "annotations")
		put(body, nil, "metadata", "finalizers")
	})
}

// copyMemory overwrites the memory with that of another object, like a client that copies annotations.
func (w *harness) copyMemory() {
	w.set("of-another", "metadata", "annotations", boundToAnnotation)
	w.set(`{"spec":{"field":"of another"}}`, "metadata", "annotations", prefix+"/last-handled-configuration")
}

// TestLostMemory shows that the process restores memory that another client removes from the object (deviation
// D-lost-memory).
func TestLostMemory(t *testing.T) {
	later := temporaryError{delay: time.Minute}
	run(t, map[string]scenario{
		"Stripped": {"a stripped object is not created again, and memory and finalizer are restored", func(w *harness) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.calls()
			w.stripMetadata()
			p.settle()
			w.wantCalls("stripped")
			w.wantHandled("stripped", "one")
			w.wantAt("restored", []any{finalizer}, "metadata", "finalizers")
			w.want("logged", true, w.hasLogged("Another client has removed"))
		}},
		"StrippedWithAnEdit": {"an edit that also strips the object is still an update", func(w *harness) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.calls()
			w.stripMetadata()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("edited", "0s update u")
			w.wantHandled("edited", "two")
		}},
		"Copied": {"copied memory of another object causes no creation, and own memory is kept", func(w *harness) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok))
			p.settle()
			w.calls()
			w.copyMemory()
			p.settle()
			w.wantCalls("copied")
			w.wantSeparateMemory("copied", `{"spec":{"field":"one"}}`)
		}},
		"OneAnnotation": {"removing only the last-handled configuration causes a creation", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.calls()
			w.set(nil, "metadata", "annotations", prefix+"/last-handled-configuration")
			p.settle()
			w.wantCalls("removed", "0s create c")
		}},
		"Retries": {"attempts continue to count although another client removes the record", func(w *harness) {
			p := w.start(onCreate("c", fails(99, later), retries(3)))
			for range 10 {
				_, _ = p.pass()
				w.stripMetadata()
				time.Sleep(time.Minute)
			}
			w.want("attempts", 3, len(w.calls()))
		}},
		"RetriesOfADeletion": {"attempts of a deletion count on although another client removes the " +
			"record", func(w *harness) {
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
		"Restarted": {"a new process creates a stripped object again", func(w *harness) {
			w.start(onCreate("c", ok)).settle()
			w.stripMetadata()
			w.calls()
			w.start(onCreate("c", ok)).settle()
			w.wantCalls("second life", "0s create c")
		}},
	})
}

// TestLossesAgainAndAgain shows that two controllers that undo each other's writes do so with growing delays.
func TestLossesAgainAndAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	run(t, map[string]scenario{"Stripped": {"the delay of restoring memory doubles up to ten minutes",
		func(w *harness) {
			p := w.start(onCreate("c", ok), onDelete("d", ok))
			p.settle()
			w.calls()
			w.drainWrites()
			losses := 0
			for range 3000 {
				w.stripMetadata()
				time.Sleep(100 * time.Millisecond)
				next, err := p.pass()
				if err != nil {
					w.t.Fatal(err)
				}
				if next.MemoryLost {
					losses++
				}
			}
			w.wantCalls("with 3000 losses")
			lines := strings.Count(strings.Join(w.logLines, "\n"), "Another client has removed")
			writes := len(w.drainWrites())
			w.want("losses, lines", fmt.Sprint(9, 9), fmt.Sprint(losses, lines))
			if writes > 2*losses {
				w.t.Errorf("want at most two writes for each restored loss, got %d", writes)
			}
			time.Sleep(time.Hour)
			p.settle()
			w.want("still remembered", true, p.memory.HandledState.HadFinalizer)
			time.Sleep(time.Hour)
			_, _ = p.pass()
			w.want("finally idle", true, p.memory.IsEmpty())
		}}})
}

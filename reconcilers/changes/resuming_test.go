package changes_test

import (
	"testing"
	"time"
)

// TestResuming is about the objects that were there when the operator started.
func TestResuming(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	// prepared is an object handled by a former process.
	prepared := func(w *world) {
		w.start(onCreate("c", ok), onDelete("d", ok)).settle()
		w.calls()
		w.drainWrites()
	}
	evenIfDeleted := onResume("e", ok)
	evenIfDeleted.EvenIfDeleted = true
	run(t, map[string]scenario{
		"Once": {"each process resumes an object once, and writes nothing for it", func(w *world) {
			prepared(w)
			p := w.start(onResume("r", ok), onDelete("d", ok))
			p.memory.Initial = true
			p.settle()
			p.settle()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s resume r")
			w.wantWrites("the update alone", "main 200")
		}},
		"Retried": {"a resume that failed is retried, over deaths too", func(w *world) {
			prepared(w)
			p := w.start(onResume("r", fails(1, later)), onDelete("d", ok))
			p.memory.Initial = true
			_, _ = p.pass()
			p.kill()
			q := w.start(onResume("r", ok), onDelete("d", ok))
			q.memory.Initial = true
			q.settle()
			w.wantCalls("all", "0s resume r", "10s resume r")
			w.wantClean("all")
		}},
		"NotListed": {"an object met later is not resumed", func(w *world) {
			prepared(w)
			w.start(onResume("r", ok), onDelete("d", ok)).settle()
			w.wantCalls("all")
		}},
		"Create": {"a creation is not a resume, nor is what follows it", func(w *world) {
			p := w.start(onCreate("c", ok), onResume("r", ok))
			p.memory.Initial = true
			p.settle()
			p.settle()
			w.wantCalls("all", "0s create c")
		}},
		"WithUpdate": {"an update of the downtime is a resume as well", func(w *world) {
			prepared(w)
			w.set("two", "spec", "field")
			p := w.start(onUpdate("u", ok), onResume("r", ok), onDelete("d", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s update u", "0s update r")
			w.wantWrites("all", "main 200")
		}},
		"WithDelete": {"a deletion of the downtime is one for those who want that", func(w *world) {
			prepared(w)
			w.delete()
			p := w.start(onResume("r", ok), evenIfDeleted, onDelete("d", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s delete e", "0s delete d")
		}},
		"Superseded": {"an update in the middle of a resume takes the resume handlers along", func(w *world) {
			prepared(w)
			p := w.start(onResume("r", ok), onResume("s", fails(1, later)), onUpdate("u", ok), onDelete("d", ok))
			p.memory.Initial = true
			_, _ = p.pass()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s resume r", "0s resume s", "0s update r", "0s update u", "10s update s")
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
	})
}

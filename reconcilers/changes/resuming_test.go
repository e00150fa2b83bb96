package changes_test

import (
	"testing"
	"time"
)

// TestResuming shows how objects are handled that existed when the operator started.
func TestResuming(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	// prepared lets a former process handle the object.
	prepared := func(w *harness) {
		w.start(onCreate("c", ok), onDelete("d", ok)).settle()
		w.calls()
		w.drainWrites()
	}
	evenIfDeleted := onResume("e", ok)
	evenIfDeleted.EvenIfDeleted = true
	run(t, map[string]scenario{
		"Once": {"each process resumes an object once, without a write", func(w *harness) {
			prepared(w)
			p := w.start(onResume("r", ok), onDelete("d", ok))
			p.memory.Initial = true
			p.settle()
			p.settle()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s resume r")
			w.wantWrites("only the update", "main 200")
		}},
		"Retried": {"a failed resume handler is retried, also after a crash", func(w *harness) {
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
		"NotListed": {"an object without the initial flag is not resumed", func(w *harness) {
			prepared(w)
			w.start(onResume("r", ok), onDelete("d", ok)).settle()
			w.wantCalls("all")
		}},
		"Create": {"a created object is not resumed", func(w *harness) {
			p := w.start(onCreate("c", ok), onResume("r", ok))
			p.memory.Initial = true
			p.settle()
			p.settle()
			w.wantCalls("all", "0s create c")
		}},
		"WithUpdate": {"an update during the downtime also calls the resume handlers", func(w *harness) {
			prepared(w)
			w.set("two", "spec", "field")
			p := w.start(onUpdate("u", ok), onResume("r", ok), onDelete("d", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s update u", "0s update r")
			w.wantWrites("all", "main 200")
		}},
		"WithDelete": {"a deletion during the downtime calls only the resume handlers that opt in", func(w *harness) {
			prepared(w)
			w.delete()
			p := w.start(onResume("r", ok), evenIfDeleted, onDelete("d", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s delete e", "0s delete d")
		}},
		"Superseded": {"an update during a resume continues the resume handlers", func(w *harness) {
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

package changes_test

import (
	"testing"
)

// TestWrites shows the number of requests for each object; each request is a cost for the API server and for all
// watchers.
func TestWrites(t *testing.T) {
	run(t, map[string]scenario{
		"CreateHeld": {"a delete handler costs one write for the finalizer before the first call", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", ok), onDelete("d", ok))
			p.settle()
			w.wantCalls("creation", "0s create a", "0s create b")
			w.wantWrites("creation", "main 200", "main 200")
			w.wantAt("creation", []any{finalizer}, "metadata", "finalizers")
			w.wantHandled("creation", "one")
			w.wantClean("creation")
		}},
		// Deviation D-lifecycle: both in one pass, and one write for them.
		"CreateFree": {"without a delete handler, one write closes the creation", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", ok))
			p.settle()
			w.wantCalls("creation", "0s create a", "0s create b")
			w.wantWrites("creation", "main 200")
			w.wantClean("creation")
		}},
		"UpdateDelete": {"an update and a deletion cost one write each", func(w *harness) {
			p := w.start(onCreate("a", ok), onUpdate("b", ok), onUpdate("c", ok), onDelete("d", ok), onDelete("e", ok))
			p.settle()
			w.calls()
			w.drainWrites()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("update", "0s update b", "0s update c")
			w.wantWrites("update", "main 200")
			w.wantHandled("update", "two")
			w.delete()
			p.settle()
			w.wantCalls("deletion", "0s delete d", "0s delete e")
			w.wantWrites("deletion", "main 200")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Unhandled": {"a creation without a matching handler is stored all the same (K-diffbase-unhandled)",
			func(w *harness) {
				w.start(onUpdate("u", ok)).settle()
				w.wantCalls("creation")
				w.wantHandled("creation", "one")
			}},
		"Noop": {"a change that no handler can see is not written", func(w *harness) {
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			p.settle()
			w.drainWrites()
			w.set("x", "status", "other")
			w.set("2", "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
			p.settle()
			w.wantWrites("noop")
		}},
		"Stealth": {"an object that matches no handler is not written", func(w *harness) {
			p := w.start(onCreate("a", ok, ifLabelled), onDelete("d", ok, ifLabelled))
			p.settle()
			w.wantWrites("stealth")
		}},
		"StatusChanged": {"a status change of a kind with a subresource costs one more request",
			func(w *harness) {
				w.serveStatus(true)
				p := w.start(onCreate("a", returns("done")), onUpdate("b", ok),
					onUpdate("c", patches("x", "status", "c")))
				p.settle()
				w.wantWrites("creation", "status 200", "main 200")
				w.wantAt("creation", "done", "status", "a")
				w.set("two", "spec", "field")
				p.settle()
				w.wantWrites("update", "status 200", "main 200")
				w.wantAt("update", "x", "status", "c")
			}},
		"StatusUnchanged": {"without a status change, the status subresource is not written", func(w *harness) {
			w.serveStatus(true)
			p := w.start(onCreate("a", ok), onDelete("d", patches("x", "metadata", "labels", "last")))
			p.settle()
			w.wantWrites("creation", "main 200", "main 200")
			w.delete()
			p.settle()
			w.wantWrites("deletion", "main 200")
		}},
		"NoSubresource": {"without a subresource, the status is part of the main write", func(w *harness) {
			p := w.start(onCreate("a", returns("done")))
			p.settle()
			w.wantWrites("creation", "main 200")
			w.wantAt("creation", "done", "status", "a")
		}},
		"FinalizerNotNeeded": {"an object that leaves the filters is released with one write", func(w *harness) {
			w.set("yes", "metadata", "labels", "on")
			p := w.start(onCreate("a", ok, ifLabelled), onDelete("d", ok, ifLabelled))
			p.settle()
			w.drainWrites()
			w.set("no", "metadata", "labels", "on")
			p.settle()
			w.wantWrites("leaving", "main 200")
			w.wantAt("leaving", nil, "metadata", "finalizers")
		}},
		"Released": {"a pass that releases the object reports it, because no cache has it yet", func(w *harness) {
			p := w.start(onDelete("d", ok))
			p.settle()
			w.delete()
			next, err := p.pass()
			if err != nil || !next.Released || next.Answer != nil || next.RequeueAfter != nil {
				w.t.Errorf("want a release without a further pass, got %+v, error %v", next, err)
			}
		}},
		// Deviation D-dying-purge: the last-handled configuration is kept, and records are removed.
		"FinalizersOfOthers": {"the finalizers of others are kept and hold the object", func(w *harness) {
			w.set([]any{"other/one"}, "metadata", "finalizers")
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			p.settle()
			w.delete()
			w.drainWrites()
			p.settle()
			w.wantWrites("deletion", "main 200")
			w.wantAt("deletion", []any{"other/one"}, "metadata", "finalizers")
		}},
	})
}

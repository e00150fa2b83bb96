package changes_test

import (
	"testing"
	"time"
)

// TestLostAnswers is about writes that were done, but nobody told us.
func TestLostAnswers(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Closing": {"the answer to the closing write is lost: nobody is called again", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", all(appends("a", "spec", "list"), returns("r"))))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.wantAt("all", []any{"a"}, "spec", "list")
			w.wantClean("all")
		}},
		"TimesOut": {"an answer that comes too late is one that is lost", func(w *world) {
			w.after = func(r write) error {
				if r.number == 1 {
					time.Sleep(time.Minute)
				}
				return nil
			}
			p := w.start(onCreate("a", appends("a", "spec", "list")))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.wantAt("all", []any{"a"}, "spec", "list")
			w.wantClean("all")
		}},
		"Edited": {"neither if the object was edited since", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", patches("x", "spec", "id")), onUpdate("u", ok))
			p.step()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s create a", "1s update u")
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"Record": {"the answer to a record is lost: the attempt counts once", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", fails(9, later), retries(2)))
			p.settle()
			w.wantCalls("all", "0s create a", "10s create a")
		}},
		"Resume": {"a resume mixed into an update is not repeated", func(w *world) {
			w.start(onCreate("a", ok)).settle()
			w.calls()
			w.set("two", "spec", "field")
			w.losing(2)
			p := w.start(onUpdate("u", ok), onResume("r", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s update u", "0s update r")
		}},
		"Release": {"the answer to the release is lost: the object is gone, and that is all", func(w *world) {
			p := w.start(onDelete("d", ok))
			p.settle()
			w.delete()
			w.losing(2)
			p.settle()
			w.wantCalls("all", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Checkpoint": {"records that were written without our knowing are removed as well", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", ok), onCreate("b", takes(1500*time.Millisecond)))
			p.settle()
			w.wantWrites("all", "main 504", "main 200")
			w.wantClean("all")
			w.want("reads", 1, w.reads)
		}},
		"CheckpointThenGone": {"an object that is gone by then is not written to", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", ok), onCreate("b", all(takes(1500*time.Millisecond), does(w.delete))))
			next, err := p.pass()
			w.want("gone, error", []any{true, nil}, []any{next.Gone, err})
			w.wantWrites("all", "main 504")
		}},
		"GoneAtCheckpoint": {"so it is if that is found out while a handler is running, by one read", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", ok), onCreate("b", all(
				takes(1500*time.Millisecond), does(w.delete), takes(time.Minute),
			)))
			next, err := p.pass()
			w.want("gone, error", []any{true, nil}, []any{next.Gone, err})
			w.want("the function is not waited for", 3*time.Second, time.Since(w.started))
			w.wantWrites("all", "main 504")
			w.want("reads", 1, w.reads)
		}},
		"ThenRefused": {"what is refused after its cause was closed is nobody's failure any more, but it is logged",
			func(w *world) {
				w.losing(1)
				p := w.start(onCreate("a", patches("big", "spec", "size")), onUpdate("u", ok))
				p.step()
				w.set(nil, "spec", "size")
				w.schema = onlyNumbers
				p.settle()
				w.wantCalls("all", "0s create a")
				if !w.hasLogged("refused", `"handler"="a"`) {
					w.t.Errorf("the refusal is not logged: %v", w.logged)
				}
				w.want("memory", true, p.memory.Idle())
			}},
		"ThenGone": {"an object that is gone after a lost answer is just gone", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", ok))
			body := w.stored()
			_, err := p.over(body)
			w.delete()
			next, again := p.over(body)
			if err == nil || again != nil || !next.Gone {
				w.t.Errorf("want an error, then an object that is gone; got %v, then %v and %v", err, again, next.Gone)
			}
		}},
		"ThenReplaced": {"so is one that another has replaced", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", ok))
			body := w.stored()
			_, _ = p.over(body)
			w.replace()
			if next, err := p.over(body); err != nil || !next.Gone {
				w.t.Errorf("want an object that is gone; got %v, error %v", next.Gone, err)
			}
			w.wantAt("the other object", nil, "metadata", "annotations")
		}},
		"StaleCache": {"a cache that lags behind a lost answer does not bring the past back", func(w *world) {
			w.losing(1)
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			body := w.stored()
			_, _ = p.over(body)
			_, err := p.over(body)
			w.want("error", nil, err)
			w.wantCalls("all", "0s create a")
			w.want("memory", true, p.memory.Idle())
		}},
	})
}

package changes_test

import (
	"testing"
	"time"
)

// TestLostAnswers shows how writes are handled that took effect although their answer was lost.
func TestLostAnswers(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Closing": {"a lost answer to the closing write causes no further call", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", all(appends("a", "spec", "list"), returns("r"))))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.wantAt("all", []any{"a"}, "spec", "list")
			w.wantClean("all")
		}},
		"TimesOut": {"an answer after the timeout counts as lost", func(w *harness) {
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
		"Edited": {"an edit after a lost answer is handled as an update, without another creation", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", patches("x", "spec", "id")), onUpdate("u", ok))
			p.step()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s create a", "1s update u")
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"Record": {"an attempt counts once if the answer to its record is lost", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", fails(9, later), retries(2)))
			p.settle()
			w.wantCalls("all", "0s create a", "10s create a")
		}},
		"Resume": {"a resume that is mixed into an update is not repeated after a lost answer", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			w.calls()
			w.set("two", "spec", "field")
			w.loseAnswer(2)
			p := w.start(onUpdate("u", ok), onResume("r", ok))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s update u", "0s update r")
		}},
		"Release": {"an object is gone after a lost answer to its release", func(w *harness) {
			p := w.start(onDelete("d", ok))
			p.settle()
			w.delete()
			w.loseAnswer(2)
			p.settle()
			w.wantCalls("all", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Checkpoint": {"records written by a request with a lost answer are removed as well", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", ok), onCreate("b", takes(1500*time.Millisecond)))
			p.settle()
			w.wantWrites("all", "main 504", "main 200")
			w.wantClean("all")
			w.want("reads", 1, w.reads)
		}},
		"CheckpointThenGone": {"an object that was deleted after a lost answer is not written to", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", ok), onCreate("b", all(takes(1500*time.Millisecond), does(w.delete))))
			next, err := p.pass()
			w.want("gone, error", []any{true, nil}, []any{next.Gone, err})
			w.wantWrites("all", "main 504")
		}},
		"GoneAtCheckpoint": {"a deletion after a lost answer is found by one read during a handler", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", ok), onCreate("b", all(
				takes(1500*time.Millisecond), does(w.delete), takes(time.Minute),
			)))
			next, err := p.pass()
			w.want("gone, error", []any{true, nil}, []any{next.Gone, err})
			w.want("time without waiting for the function", 3*time.Second, time.Since(w.started))
			w.wantWrites("all", "main 504")
			w.want("reads", 1, w.reads)
		}},
		"ThenRefused": {"a refusal after its cause was closed is logged, and the handler is not called again",
			func(w *harness) {
				w.loseAnswer(1)
				p := w.start(onCreate("a", patches("big", "spec", "size")), onUpdate("u", ok))
				p.step()
				w.set(nil, "spec", "size")
				w.schema = onlyNumbers
				p.settle()
				w.wantCalls("all", "0s create a")
				if !w.hasLogged("refused", `"handler"="a"`) {
					w.t.Errorf("the refusal is not logged: %v", w.logLines)
				}
				w.want("memory", true, p.memory.IsEmpty())
			}},
		"ThenGone": {"an object that was deleted after a lost answer is gone, without a second error",
			func(w *harness) {
				w.loseAnswer(1)
				p := w.start(onCreate("a", ok))
				body := w.stored()
				_, err := p.passOver(body)
				w.delete()
				next, again := p.passOver(body)
				if err == nil || again != nil || !next.Gone {
					w.t.Errorf("want an error, then a deleted object; got %v, then %v and %v", err, again, next.Gone)
				}
			}},
		"ThenReplaced": {"an object that was replaced after a lost answer is gone", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", ok))
			body := w.stored()
			_, _ = p.passOver(body)
			w.replace()
			if next, err := p.passOver(body); err != nil || !next.Gone {
				w.t.Errorf("want a deleted object; got gone: %v, error %v", next.Gone, err)
			}
			w.wantAt("the other object", nil, "metadata", "annotations")
		}},
		"StaleCache": {"a stale cache after a lost answer causes no further call", func(w *harness) {
			w.loseAnswer(1)
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			body := w.stored()
			_, _ = p.passOver(body)
			_, err := p.passOver(body)
			w.want("error", nil, err)
			w.wantCalls("all", "0s create a")
			w.want("memory", true, p.memory.IsEmpty())
		}},
	})
}

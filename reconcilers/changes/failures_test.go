package changes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// forbidWrites refuses all writes for the given duration.
func (w *harness) forbidWrites(d time.Duration) {
	until := time.Now().Add(d)
	w.before = func(write) error {
		if time.Now().Before(until) {
			return memapi.NewRefusal(403)
		}
		return nil
	}
}

// loseAnswer drops the answer to one write that took effect.
func (w *harness) loseAnswer(number int) {
	w.after = func(r write) error {
		if r.number == number {
			return memapi.NewRefusal(504)
		}
		return nil
	}
}

func failingFilter(context.Context, *cause.Cause) (bool, error) { return false, errOrdinary }

// TestFailures shows that an object is processed again after a write that failed for a reason other than its content
// (deviation D-reprocess).
func TestFailures(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Forbidden": {"outcomes that could not be written are written later without another call", func(w *harness) {
			w.forbidWrites(30 * time.Second)
			p := w.start(onCreate("a", all(patches("x", "spec", "id"), returns("r"))), onCreate("b", ok))
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b")
			w.wantAt("all", "x", "spec", "id")
			w.wantAt("all", "r", "status", "a")
			w.wantHandled("all", "one")
			w.wantClean("all")
			w.want("memory", true, p.memory.IsEmpty())
		}},
		"ForbiddenRetries": {"a handler is not retried while its attempts cannot be stored",
			func(w *harness) {
				w.forbidWrites(100 * time.Second)
				p := w.start(onCreate("a", fails(2, later)), onCreate("b", ok))
				p.settle()
				w.wantCalls("all", "0s create a", "0s create b", "1m40s create a", "1m50s create a")
				w.wantClean("all")
			}},
		"ForbiddenCheckpoints": {"checkpoints of a long handler are retried about once a minute in the long run",
			func(w *harness) {
				w.forbidWrites(24 * time.Hour)
				p := w.start(onCreate("a", ok), onCreate("b", takes(time.Hour)))
				_, err := p.pass()
				if err == nil {
					w.t.Error("want an error of the pass, got none")
				}
				if n := len(w.drainWrites()); n > 70 {
					w.t.Errorf("want one try a minute at most in the long run, got %d in an hour", n)
				}
			}},
		"ForbiddenFinalizer": {"no handler is called before the finalizer is stored", func(w *harness) {
			w.forbidWrites(10 * time.Second)
			w.start(onCreate("a", ok), onDelete("d", ok)).settle()
			w.wantCalls("all", "10s create a")
		}},
		"TimesOut": {"a write that gets no answer ends with a timeout and is retried", func(w *harness) {
			w.before = func(r write) error {
				if r.number == 1 {
					time.Sleep(time.Minute)
				}
				return nil
			}
			p := w.start(onCreate("a", patches("x", "spec", "id")))
			p.settle()
			w.want("errors", 1, len(p.errs))
			w.wantCalls("all", "0s create a")
			w.wantAt("all", "x", "spec", "id")
		}},
		"EditedMeanwhile": {"an edit during failed writes is handled as an update", func(w *harness) {
			w.forbidWrites(10 * time.Second)
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			p.step()
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s create a", "10s update u")
			w.wantHandled("all", "two")
		}},
		"RevertedMeanwhile": {"a revert during failed writes is handled as an update", func(w *harness) {
			p := w.start(onUpdate("u", ok))
			p.settle()
			w.set("two", "spec", "field")
			w.forbidWrites(10 * time.Second)
			p.step()
			w.set("one", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s update u", "10s update u")
			w.wantHandled("all", "one")
		}},
		"LeftFiltersMeanwhile": {"patches for an object that does not match any more are still written",
			func(w *harness) {
				w.set("yes", "metadata", "labels", "on")
				w.forbidWrites(10 * time.Second)
				p := w.start(onCreate("a", patches("x", "spec", "id"), ifLabelled))
				p.step()
				w.set("no", "metadata", "labels", "on")
				p.settle()
				w.wantAt("all", "x", "spec", "id")
				w.wantCalls("all", "0s create a")
			}},
		"DeletedMeanwhile": {"a delete handler sees the patches of the creation that could not be written",
			func(w *harness) {
				var known any
				look := func(_ context.Context, c *handlers.Invocation) error {
					known = at(working(c), "spec", "id")
					return nil
				}
				w.set([]any{finalizer}, "metadata", "finalizers")
				w.forbidWrites(10 * time.Second)
				p := w.start(onCreate("a", patches("x", "spec", "id")), onDelete("d", look))
				p.step()
				w.delete()
				p.settle()
				w.want("known", "x", known)
				w.wantCalls("all", "0s create a", "1s delete d")
				w.want("stored", map[string]any(nil), w.stored())
			}},
		"DeletedMeanwhileRetried": {"a delete handler sees unwritten patches at its second attempt", func(w *harness) {
			var known []any
			look := func(_ context.Context, c *handlers.Invocation) error {
				known = append(known, at(working(c), "spec", "id"))
				return nil
			}
			w.set([]any{finalizer}, "metadata", "finalizers")
			w.forbidWrites(3 * time.Second)
			p := w.start(onCreate("a", patches("x", "spec", "id")), onDelete("d", all(look, fails(1, later))))
			p.step()
			w.delete()
			p.settle()
			w.want("known", []any{"x", "x"}, known)
			w.wantCalls("all", "0s create a", "1s delete d", "11s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Resume": {"a resume handler whose patch could not be written is not called again", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			w.calls()
			w.forbidWrites(5 * time.Second)
			p := w.start(onResume("r", patches("x", "spec", "id")))
			p.memory.Initial = true
			p.settle()
			w.wantCalls("all", "0s resume r")
			w.wantAt("all", "x", "spec", "id")
		}},
		"MainAfterStatus": {"a main write that fails after the status write is retried alone", func(w *harness) {
			w.serveStatus(true)
			w.before = func(r write) error {
				if !r.status && r.number < 6 {
					return memapi.NewRefusal(403)
				}
				return nil
			}
			p := w.start(onCreate("a", all(appends("a", "status", "list"), patches("x", "spec", "id"))))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.wantAt("all", []any{"a"}, "status", "list")
			w.wantAt("all", "x", "spec", "id")
		}},
		"FilterFails": {"a failing filter is an error of the pass, without a call or a write", func(w *harness) {
			broken := onCreate("a", ok)
			broken.Filters = []handlers.Filter{failingFilter}
			p := w.start(broken)
			if _, err := p.pass(); !errors.Is(err, errOrdinary) {
				w.t.Errorf("want %v, got %v", errOrdinary, err)
			}
			w.wantWrites("all")
		}},
	})
}

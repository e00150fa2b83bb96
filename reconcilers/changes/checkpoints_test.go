package changes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// settleInBackground runs the process in another goroutine until it is idle, while the test continues.
func (p *process) settleInBackground() (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		p.settle()
	}()
	return done
}

// advanceTime advances the virtual time and waits until everything due in that time is done.
func advanceTime(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestCheckpoints shows which progress is stored on the object while handlers are still running.
func TestCheckpoints(t *testing.T) {
	run(t, map[string]scenario{
		"Delayed": {"an outcome is written one second after it was reported, and not earlier", func(w *harness) {
			p := w.start(onCreate("a", returns("done")), onCreate("b", takes(10*time.Second)))
			done := p.settleInBackground()
			advanceTime(900 * time.Millisecond)
			w.wantWrites("before the checkpoint")
			advanceTime(200 * time.Millisecond)
			w.wantWrites("at the checkpoint", "main 200")
			w.want("record of a", true, w.record("a", "success"))
			w.want("record of b", int64(0), w.record("b", "retries"))
			w.wantAt("at the checkpoint", "done", "status", "a")
			w.want("diff-base", nil, w.annotation(handledAnnotation))
			<-done
			w.wantWrites("after the last handler", "main 200")
			w.wantCalls("all", "0s create a", "0s create b")
			w.wantClean("after the last handler")
		}},
		"Oldest": {"the second counts from the oldest unwritten outcome", func(w *harness) {
			p := w.start(
				onCreate("a", ok), onCreate("b", takes(700*time.Millisecond)), onCreate("c", takes(10*time.Second)),
			)
			done := p.settleInBackground()
			advanceTime(1100 * time.Millisecond)
			w.want("record of b", true, w.record("b", "success"))
			<-done
			w.wantWrites("all", "main 200", "main 200")
		}},
		"Setting": {"the delay of a checkpoint is a setting", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", takes(10*time.Second)))
			p.handling.Checkpoint = 3 * time.Second
			done := p.settleInBackground()
			advanceTime(2900 * time.Millisecond)
			w.wantWrites("before")
			advanceTime(200 * time.Millisecond)
			w.wantWrites("at the checkpoint", "main 200")
			<-done
		}},
		"Killed": {"a crash repeats the running handler, but not a handler that returned more than a second before",
			func(w *harness) {
				slow := takes(10 * time.Second)
				registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", slow), onDelete("d", ok)}
				p := w.start(registered...)
				done := p.settleInBackground()
				advanceTime(5 * time.Second)
				p.kill()
				<-done
				w.wantCalls("first life", "0s create a", "0s create b")
				w.start(registered...).settle()
				w.wantCalls("second life", "5s create b")
				w.wantHandled("after the second life", "one")
				w.wantClean("after the second life")
			}},
		"KilledAndEdited": {"an edit between two lives, which the first handler did not see, is handled as an " +
			"update", func(w *harness) {
			registered := []*handlers.Handler{
				onCreate("a", ok), onCreate("b", takes(10*time.Second)), onUpdate("u", ok),
			}
			p := w.start(registered...)
			done := p.settleInBackground()
			advanceTime(5 * time.Second)
			p.kill()
			<-done
			w.set("two", "spec", "field")
			w.calls()
			w.start(registered...).settle()
			w.wantCalls("second life", "5s create b", "15s update u")
			w.wantHandled("after the second life", "two")
			w.wantClean("after the second life")
		}},
		"BetweenStatusAndMain": {"the status is written first, so a crash before the main write loses " +
			"nothing", func(w *harness) {
			w.serveStatus(true)
			registered := []*handlers.Handler{onCreate("a", returns("r")), onCreate("b", patches("p", "status", "b"))}
			p := w.start(registered...)
			w.before = func(r write) error {
				if !r.status {
					p.kill()
				}
				return nil
			}
			p.settle()
			w.wantAt("after the death", "r", "status", "a")
			w.wantAt("after the death", "p", "status", "b")
			w.before = nil
			w.start(registered...).settle()
			w.wantAt("after the second life", "r", "status", "a")
			w.wantAt("after the second life", "p", "status", "b")
			w.wantHandled("after the second life", "one")
		}},
		"NotRunning": {"the outcome of the last handler is written without a delay", func(w *harness) {
			p := w.start(onCreate("a", takes(5*time.Second)))
			p.settle()
			w.wantWrites("all", "main 200")
		}},
		"Conflict": {"an edit at the moment of a checkpoint is merged with the change of the handler",
			func(w *harness) {
				w.set([]any{"x"}, "spec", "list")
				p := w.start(onCreate("a", appends("a", "spec", "list")), onCreate("b", takes(10*time.Second)))
				w.before = func(r write) error {
					if r.number == 1 {
						w.set([]any{"x", "y"}, "spec", "list")
					}
					return nil
				}
				done := p.settleInBackground()
				advanceTime(2 * time.Second)
				w.wantWrites("checkpoint", "main 409", "main 200")
				w.wantAt("checkpoint", []any{"x", "y", "a"}, "spec", "list")
				<-done
			}},
	})
}

// appends returns a handler that adds an item to a list, unless the list already contains it.
func appends(item any, path ...string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		return c.Writer.AddTransform(func(body map[string]any) error {
			list, _ := at(body, path...).([]any)
			for _, held := range list {
				if cmp.Equal(held, item) {
					return nil
				}
			}
			put(body, append(append([]any{}, list...), item), path...)
			return nil
		})
	}
}

package changes_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestRunsOfSubHandlers shows the ways in which a handler can run its sub-handlers.
func TestRunsOfSubHandlers(t *testing.T) {
	run(t, map[string]scenario{
		"Twice": {"a second declaration of an id is a permanent error", func(w *harness) {
			w.start(onCreate("a", runs(sub("s", ok), sub("s", ok)))).settle()
			w.wantCalls("all", "0s create a")
			w.want("logged", true, w.hasLogged(`sub-handler \"a/s\" is declared twice`))
		}},
		"NoneFirst": {"sub-handlers that are declared after an empty run are called", func(w *harness) {
			w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				if err := c.Subs.Run(ctx, nil); err != nil {
					return err
				}
				return w.steps(nil, sub("s", ok))(ctx, c)
			})).settle()
			w.wantCalls("all", "0s create a", "0s create s")
		}},
		"WithinItself": {"a sub-handler that runs all sub-handlers of its parent gets an error", func(w *harness) {
			var told error
			w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				return w.steps(nil, sub("s", func(ctx context.Context, _ *handlers.Invocation) error {
					told = c.Subs.Run(ctx, nil)
					return nil
				}))(ctx, c)
			})).settle()
			if told == nil || !strings.Contains(told.Error(), "running already") {
				w.t.Errorf("want an error about a running sub-handler, got %v", told)
			}
			w.wantCalls("all", "0s create a", "0s create s")
		}},
		"Few": {"nothing about room is logged if all sub-handlers fit", func(w *harness) {
			once := fails(1, temporaryError{time.Second})
			w.compact(onCreate("a", w.steps(nil, sub("s", ok), sub("t", once)))).settle()
			w.want("logged", false, w.hasLogged("too many"))
		}},
		"OneAtATime": {"with one sub-handler at a time, a dependent is called in the next run", func(w *harness) {
			lifecycle := handlers.OneByOne
			w.compact(onCreate("a", w.steps(&lifecycle, sub("s", ok), sub("t", ok, afterSuccess("s"))))).settle()
			w.wantCalls("all", "0s create a", "0s create s", "0s create a", "0s create t")
		}},
		"Waits": {"a handler waits for the child that its sub-handler waits for", func(w *harness) {
			known, n := &children{}, 1
			waits := func(context.Context, *handlers.Invocation) error {
				if n--; n < 0 {
					return nil
				}
				return &execution.PendingError{
					Delay: time.Hour, Wait: progress.Wait{Child: "k", Until: w.started.Add(time.Hour)},
				}
			}
			p := w.start(onCreate("a", w.steps(nil, sub("r", fails(1, temporaryError{time.Hour})), sub("s", waits))))
			p.handling.Waits = known
			_, _ = p.pass()
			w.want("recorded", "k", w.record("a", "awaited"))
			w.want("the last reported wait", []string{"a waits: true"},
				known.reportedWaits[len(known.reportedWaits)-1:])
		}},
	})
}

// TestSpareMemory shows that interim memory is reduced to a digest if sub-handlers need its room.
func TestSpareMemory(t *testing.T) {
	run(t, map[string]scenario{
		"Large": {"sub-handlers get the room of an essence that fills the annotations", func(w *harness) {
			w.set(strings.Repeat("x", 120*1024), "spec", "text")
			w.start(onCreate("c", ok)).settle()
			w.calls()
			w.set("two", "spec", "field")
			p := w.compact(onUpdate("a", ok), onUpdate("b", func(ctx context.Context, c *handlers.Invocation) error {
				if err := c.Writer.Flush(ctx); err != nil {
					return err
				}
				if at(w.annotation(interimAnnotation), "spec", "field") == nil {
					w.t.Error("the interim memory is missing")
				}
				return w.steps(nil, sub("s", ok), sub("t", ok))(ctx, c)
			}))
			p.settle()
			w.wantCalls("all", "0s update a", "0s update b", "0s update s", "0s update t")
			w.want("logged", false, w.hasLogged("too many"))
		}},
	})
}

// TestBetweenHandlers shows the behaviour of pauses and exits that begin while a handler is running.
func TestBetweenHandlers(t *testing.T) {
	run(t, map[string]scenario{
		"PauseFirst": {"no further handler is called after a pause has begun", func(w *harness) {
			open := true
			p := w.start(onCreate("a", func(context.Context, *handlers.Invocation) error { open = false; return nil }),
				onCreate("b", ok))
			p.handling.Gate = gate(func() bool { return open })
			_, _ = p.pass()
			w.wantCalls("paused", "0s create a")
			w.want("record of a", true, w.record("a", "success"))
		}},
		"PauseLast": {"a paused object gets no delay for its retry", func(w *harness) {
			open := true
			p := w.start(onCreate("a", func(context.Context, *handlers.Invocation) error {
				open = false
				return temporaryError{time.Minute}
			}))
			p.handling.Gate = gate(func() bool { return open })
			if next, err := p.pass(); err != nil || next.RequeueAfter != nil {
				w.t.Errorf("want no delay and no error, got %v; error %v", next.RequeueAfter, err)
			}
		}},
		"ExitFirst": {"an exit without waiting outcomes writes nothing", func(w *harness) {
			p := w.start(onCreate("a", func(ctx context.Context, _ *handlers.Invocation) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				return ctx.Err()
			}))
			done := p.settleInBackground()
			advanceTime(500 * time.Millisecond)
			p.exit()
			synctest.Wait()
			w.wantWrites("at the exit")
			<-done
		}},
	})
}

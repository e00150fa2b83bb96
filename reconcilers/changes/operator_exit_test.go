package changes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestExit shows how a pass ends when its context is cancelled, as by SIGTERM.
func TestExit(t *testing.T) {
	run(t, map[string]scenario{
		"Running": {"an exit writes finished outcomes at once; the cancelled handler is not counted",
			func(w *harness) {
				var told error
				stubborn := func(ctx context.Context, _ *handlers.Invocation) error {
					<-ctx.Done()
					told = context.Cause(ctx)
					time.Sleep(3 * time.Second)
					return ctx.Err()
				}
				p := w.start(onCreate("a", returns("r")), onCreate("b", stubborn), onCreate("c", ok))
				done := p.settleInBackground()
				advanceTime(500 * time.Millisecond)
				w.wantWrites("before")
				p.exit()
				synctest.Wait()
				w.wantWrites("at once", "main 200")
				w.want("record of a", true, w.record("a", "success"))
				<-done
				if !errors.Is(told, execution.ErrExiting) {
					w.t.Errorf("cancellation cause: want %v, got %v", execution.ErrExiting, told)
				}
				w.want("attempts of b", int64(0), w.record("b", "retries"))
				w.wantWrites("afterwards")
				w.wantCalls("calls", "0s create a", "0s create b")
			}},
		"Finishing": {"a handler that succeeds after the exit counts as successful", func(w *harness) {
			finishing := func(ctx context.Context, c *handlers.Invocation) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				return c.Writer.SetResult("r")
			}
			p := w.start(onCreate("a", finishing), onCreate("b", ok))
			done := p.settleInBackground()
			advanceTime(500 * time.Millisecond)
			p.exit()
			<-done
			w.want("record of a", true, w.record("a", "success"))
			w.wantAt("result", "r", "status", "a")
			w.wantCalls("calls", "0s create a")
			w.start(onCreate("a", ok), onCreate("b", ok)).settle()
			w.wantCalls("next life", "3.5s create b")
		}},
		"Remembered": {"patches of an interrupted handler are written", func(w *harness) {
			p := w.start(onCreate("a", all(patches("x", "spec", "id"), takes(time.Minute))))
			done := p.settleInBackground()
			advanceTime(500 * time.Millisecond)
			p.exit()
			<-done
			w.wantAt("after the exit", "x", "spec", "id")
			w.want("attempts of a", int64(0), w.record("a", "retries"))
		}},
		"DuringWrite": {"a handler is cancelled at once, even during a slow write", func(w *harness) {
			var told time.Duration
			p := w.start(onCreate("a", ok), onCreate("b", func(ctx context.Context, _ *handlers.Invocation) error {
				<-ctx.Done()
				told = time.Since(w.started)
				return ctx.Err()
			}))
			w.before = func(write) error { time.Sleep(8 * time.Second); return nil }
			done := p.settleInBackground()
			advanceTime(2 * time.Second)
			p.exit()
			<-done
			w.want("cancelled after", 2*time.Second, told)
			w.want("record of a", true, w.record("a", "success"))
		}},
		"NotBegun": {"a pass that begins during the exit calls no handler and writes nothing", func(w *harness) {
			p := w.start(onCreate("a", ok))
			p.exit()
			next, err := p.pass()
			if err != nil || next.RequeueAfter != nil {
				w.t.Errorf("want no error and no delay, got %v and %v", err, next.RequeueAfter)
			}
			w.wantCalls("calls")
			w.wantWrites("writes")
		}},
	})
}

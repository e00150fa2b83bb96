package changes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// TestExit is about SIGTERM: the context of the pass ends.
func TestExit(t *testing.T) {
	run(t, map[string]scenario{
		"Running": {"what earlier handlers did is written at once; the running one is told why, and does not count",
			func(w *world) {
				var told error
				stubborn := func(ctx context.Context, _ *handlers.Invocation) error {
					<-ctx.Done()
					told = context.Cause(ctx)
					time.Sleep(3 * time.Second)
					return ctx.Err()
				}
				p := w.start(onCreate("a", returns("r")), onCreate("b", stubborn), onCreate("c", ok))
				done := p.aside()
				after(500 * time.Millisecond)
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
		"Finishing": {"a handler that finishes nevertheless has succeeded", func(w *world) {
			finishing := func(ctx context.Context, c *handlers.Invocation) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				return c.Writes.SetResult("r")
			}
			p := w.start(onCreate("a", finishing), onCreate("b", ok))
			done := p.aside()
			after(500 * time.Millisecond)
			p.exit()
			<-done
			w.want("record of a", true, w.record("a", "success"))
			w.wantAt("result", "r", "status", "a")
			w.wantCalls("calls", "0s create a")
			w.start(onCreate("a", ok), onCreate("b", ok)).settle()
			w.wantCalls("next life", "3.5s create b")
		}},
		"Remembered": {"what an interrupted handler remembered is written", func(w *world) {
			p := w.start(onCreate("a", all(patches("x", "spec", "id"), takes(time.Minute))))
			done := p.aside()
			after(500 * time.Millisecond)
			p.exit()
			<-done
			w.wantAt("after the exit", "x", "spec", "id")
			w.want("attempts of a", int64(0), w.record("a", "retries"))
		}},
		"DuringWrite": {"a handler is told at once, even if a write is under way that takes its time", func(w *world) {
			var told time.Duration
			p := w.start(onCreate("a", ok), onCreate("b", func(ctx context.Context, _ *handlers.Invocation) error {
				<-ctx.Done()
				told = time.Since(w.started)
				return ctx.Err()
			}))
			w.before = func(write) error { time.Sleep(8 * time.Second); return nil }
			done := p.aside()
			after(2 * time.Second)
			p.exit()
			<-done
			w.want("told after", 2*time.Second, told)
			w.want("record of a", true, w.record("a", "success"))
		}},
		"NotBegun": {"a pass that begins when the operator exits calls nobody and writes nothing", func(w *world) {
			p := w.start(onCreate("a", ok))
			p.exit()
			next, err := p.pass()
			if err != nil || next.After != nil {
				w.t.Errorf("want no error and nothing to follow, got %v and %v", err, next.After)
			}
			w.wantCalls("calls")
			w.wantWrites("writes")
		}},
	})
}

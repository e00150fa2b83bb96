package changes_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestLeaks shows that goroutines that outlive their handler do no harm.
func TestLeaks(t *testing.T) {
	run(t, map[string]scenario{
		"Late": {"changes by a goroutine after its handler has returned are errors", func(w *harness) {
			var late [3]error
			done := make(chan struct{})
			leaky := func(ctx context.Context, c *handlers.Invocation) error {
				go func() {
					defer close(done)
					time.Sleep(time.Second)
					late = [3]error{
						patches("x", "spec", "id")(ctx, c), c.Writer.SetResult(1),
						c.Writer.Flush(context.WithoutCancel(ctx)),
					}
				}()
				return nil
			}
			p := w.start(onCreate("a", leaky), onCreate("b", takes(5*time.Second)))
			p.settle()
			<-done
			for i, err := range late {
				if err == nil {
					w.t.Errorf("want an error of late call %d, got nil", i)
				}
			}
			w.wantAt("all", nil, "spec", "id")
		}},
		"Reading": {"a goroutine can read its copy while the next handler changes its own copy", func(w *harness) {
			done := make(chan struct{})
			leaky := func(_ context.Context, c *handlers.Invocation) error {
				go func() {
					defer close(done)
					for range 100 {
						_ = copied(working(c))
					}
				}()
				return nil
			}
			p := w.start(
				onCreate("a", leaky), onCreate("b", all(patches("x", "spec", "id"), patches("y", "spec", "id"))),
			)
			p.settle()
			<-done
		}},
		"ResultKept": {"later changes to a value that was set as the result are ignored", func(w *harness) {
			result := map[string]any{"k": "v"}
			p := w.start(onCreate("a", all(returns(result), does(func() { result["k"] = "changed" }))))
			p.settle()
			w.wantAt("all", "v", "status", "a", "k")
		}},
		"NeverReturns": {"a function that ends its goroutine has failed, and is retried with the " +
			"usual delay", func(w *harness) {
			p := w.start(onCreate("a", func(context.Context, *handlers.Invocation) error {
				runtime.Goexit() // like a test that fails inside of a handler
				return nil
			}, retries(2)))
			p.settle()
			w.wantCalls("all", "0s create a", "1m0s create a")
		}},
	})
}

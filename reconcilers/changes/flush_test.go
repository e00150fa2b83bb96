package changes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

func flushes(ctx context.Context, c *handlers.Invocation) error { return c.Writer.Flush(ctx) }

// TestFlush shows the behaviour of handlers that write their changes before they return.
func TestFlush(t *testing.T) {
	run(t, map[string]scenario{
		"Now": {"changes are stored when Flush returns, and survive a crash", func(w *harness) {
			registered := onCreate("a", all(patches("x", "spec", "id"), flushes, takes(time.Minute)))
			p := w.start(registered)
			done := p.settleInBackground()
			synctest.Wait()
			w.wantAt("flushed", "x", "spec", "id")
			w.want("attempts", int64(0), w.record("a", "retries"))
			p.kill()
			<-done
			var known any
			w.start(onCreate("a", func(
				_ context.Context, c *handlers.Invocation,
			) error {
				known = at(working(c), "spec", "id")
				return nil
			})).settle()
			w.want("next life", "x", known)
		}},
		"WithOthers": {"a flush writes waiting outcomes of other handlers with the same request", func(w *harness) {
			p := w.start(
				onCreate("a", returns("r")),
				onCreate("b", all(patches("x", "spec", "id"), flushes, takes(10*time.Second))),
			)
			done := p.settleInBackground()
			synctest.Wait()
			w.wantWrites("flush", "main 200")
			w.wantAt("flush", "r", "status", "a")
			w.want("record of a", true, w.record("a", "success"))
			advanceTime(2 * time.Second)
			w.wantWrites("no checkpoint")
			<-done
		}},
		"Nothing": {"a flush without changes writes the records once, since the handler has begun", func(w *harness) {
			p := w.start(onCreate("a", all(flushes, flushes)))
			_, _ = p.pass()
			w.wantWrites("all", "main 200", "main 200")
		}},
		"SeenByNext": {"the next handler sees the flushed changes", func(w *harness) {
			var known any
			p := w.start(onCreate("a", all(patches("x", "spec", "id"), flushes)),
				onCreate("b", func(_ context.Context, c *handlers.Invocation) error {
					known = at(working(c), "spec", "id")
					return nil
				}))
			p.settle()
			w.want("known", "x", known)
		}},
		"AtCheckpoint": {"a flush at the same time as a checkpoint loses nothing", func(w *harness) {
			p := w.start(
				onCreate("a", returns("r")),
				onCreate("b", all(takes(time.Second), patches("x", "spec", "id"), flushes, takes(time.Second))),
			)
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantAt("all", "x", "spec", "id")
			w.wantCalls("all", "0s create a", "0s create b")
		}},
		"Concurrent": {"several goroutines of a handler can flush at the same time", func(w *harness) {
			p := w.start(onCreate("a", returns("r")), onCreate("b", func(
				ctx context.Context, c *handlers.Invocation,
			) error {
				var group sync.WaitGroup
				errs := make([]error, 8)
				for i := range errs {
					group.Go(func() {
						time.Sleep(time.Duration(i) * 250 * time.Millisecond)
						errs[i] = errors.Join(appends(int64(i), "spec", "list")(ctx, c), c.Writer.Flush(ctx))
					})
				}
				group.Wait()
				return errors.Join(errs...)
			}))
			p.settle()
			w.want("errors", []error(nil), p.errs)
			list, _ := w.at("spec", "list").([]any)
			w.want("items", 8, len(list))
		}},
		"Refused": {"a refused flush returns the refusal, and only the flushing handler is retried",
			func(w *harness) {
				w.schema = onlyNumbers
				var told error
				p := w.start(onCreate("a", patches("y", "spec", "id")),
					onCreate("b", func(ctx context.Context, c *handlers.Invocation) error {
						_ = patches("big", "spec", "size")(ctx, c)
						told = c.Writer.Flush(ctx)
						return told
					}, retries(2)))
				p.settle()
				if told == nil {
					w.t.Error("want the refusal from Flush, got no error")
				}
				w.wantCalls("all", "0s create a", "0s create b", "1m0s create b")
				w.wantAt("all", "y", "spec", "id")
				w.want("errors", []error(nil), p.errs)
			}},
		"RefusedAndMended": {"a handler can replace a refused change and succeed", func(w *harness) {
			w.schema = onlyNumbers
			p := w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				_ = patches("big", "spec", "size")(ctx, c)
				if c.Writer.Flush(ctx) == nil {
					return errors.New("not refused")
				}
				return patches(int64(1), "spec", "size")(ctx, c)
			}))
			p.settle()
			w.wantCalls("all", "0s create a")
			w.wantAt("all", int64(1), "spec", "size")
		}},
		"RefusedForAnother": {"a flush does not return the refusal of changes of an earlier handler", func(w *harness) {
			w.schema = onlyNumbers
			var told error
			p := w.start(onCreate("a", patches("big", "spec", "size"), retries(1)),
				onCreate("b", func(ctx context.Context, c *handlers.Invocation) error {
					_ = patches("y", "spec", "id")(ctx, c)
					told = c.Writer.Flush(ctx)
					return told
				}))
			p.settle()
			w.want("error of the flush", error(nil), told)
			w.wantAt("all", "y", "spec", "id")
			w.wantCalls("all", "0s create a", "0s create b")
		}},
		"Forbidden": {"a failed flush returns an error, and the change is written after the handler", func(w *harness) {
			w.forbidWrites(time.Second)
			var told error
			p := w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				_ = patches("x", "spec", "id")(ctx, c)
				told = c.Writer.Flush(ctx)
				return takes(2*time.Second)(ctx, c)
			}))
			p.settle()
			if told == nil {
				w.t.Error("want the failure from Flush, got no error")
			}
			w.wantAt("all", "x", "spec", "id")
			w.want("errors", []error(nil), p.errs)
		}},
		"Gone": {"every flush for a deleted object returns ErrDeleted", func(w *harness) {
			var told [2]error
			p := w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				w.delete()
				told = [2]error{c.Writer.Flush(ctx), c.Writer.Flush(context.WithoutCancel(ctx))}
				return told[0]
			}))
			p.settle()
			for _, err := range told {
				if !errors.Is(err, execution.ErrDeleted) {
					w.t.Errorf("want %v, got %v", execution.ErrDeleted, err)
				}
			}
			w.wantWrites("all", "main 404")
		}},
	})
}

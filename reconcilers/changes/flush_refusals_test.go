package changes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// flushing patches spec.id, flushes, and stores the error of the flush and the value that the object has then.
func (w *harness) flushing(told *error, stored *any) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		_ = patches("y", "spec", "id")(ctx, c)
		*told = c.Writer.Flush(ctx)
		*stored = w.at("spec", "id")
		return nil
	}
}

// TestRefusedFlush shows the result of a flush that fails because of changes of the handler itself or of an earlier
// handler.
func TestRefusedFlush(t *testing.T) {
	run(t, map[string]scenario{
		"Alone": {"a refused flush is not split if only one handler has changes", func(w *harness) {
			w.schema = onlyNumbers
			p := w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				_ = patches("big", "spec", "size")(ctx, c)
				if c.Writer.Flush(ctx) == nil {
					w.t.Error("the flush succeeded, want an error")
				}
				w.wantWrites("flush", "main 422")
				return patches(int64(1), "spec", "size")(ctx, c)
			}))
			p.settle()
			w.wantAt("all", int64(1), "spec", "size")
		}},
		"Broken": {"a flush that fails with a server error does not blame earlier handlers", func(w *harness) {
			w.before = func(write) error { return memapi.NewRefusal(500, "broken") }
			var told error
			p := w.start(onCreate("a", patches("x", "spec", "other")),
				onCreate("b", func(ctx context.Context, c *handlers.Invocation) error {
					told = c.Writer.Flush(ctx)
					w.wantWrites("flush", "main 500")
					w.before = nil
					return nil
				}))
			p.settle()
			if told == nil {
				w.t.Error("the flush succeeded, want an error")
			}
			w.wantAt("all", "x", "spec", "other")
		}},
		"OfAnother": {"a flush succeeds if only the changes of an earlier handler are refused", func(w *harness) {
			w.schema = onlyNumbers
			told, stored := errors.New("not called"), any(nil)
			w.start(
				onCreate("a", patches("big", "spec", "size"), retries(1)), onCreate("b", w.flushing(&told, &stored)),
			).settle()
			w.want("the error of the flush, and the stored value", []any{nil, "y"}, []any{told, stored})
		}},
		"BrokenMeanwhile": {"a server error during the search for the refused change leaves the decision to a later " +
			"write", func(w *harness) {
			w.schema = onlyNumbers
			broken := true
			w.before = func(one write) error {
				if broken && one.number > 1 {
					return memapi.NewRefusal(500, "broken")
				}
				return nil
			}
			told, stored := error(nil), any(nil)
			flush := w.flushing(&told, &stored)
			w.start(
				onCreate("a", patches("big", "spec", "size"), retries(1)),
				onCreate("b", func(ctx context.Context, c *handlers.Invocation) error {
					err := flush(ctx, c)
					w.wantWrites("flush", "main 422", "main 500")
					broken = false
					return err
				}),
			).settle()
			if told == nil || stored != nil {
				w.t.Errorf("want an error from Flush and nothing stored, got error %v and stored %v", told, stored)
			}
			w.wantAt("all", "y", "spec", "id")
		}},
		"GoneMeanwhile": {"no further write follows if the object ends during the search for the refused change",
			func(w *harness) {
				w.schema = onlyNumbers
				w.before = func(one write) error {
					if one.number > 1 {
						w.delete()
					}
					return nil
				}
				told, stored := errors.New("not called"), any(nil)
				a := onCreate("a", patches("big", "spec", "size"), retries(1))
				w.start(a, onCreate("b", w.flushing(&told, &stored))).settle()
				if !errors.Is(told, execution.ErrDeleted) {
					w.t.Errorf("want %v, got %v", execution.ErrDeleted, told)
				}
				w.wantWrites("all", "main 422", "main 404")
			}},
	})
}

// TestChangesOfSubHandlers shows which changes and errors of sub-handlers their parent sees.
func TestChangesOfSubHandlers(t *testing.T) {
	sees := func(to *any) handlers.Func {
		return func(_ context.Context, c *handlers.Invocation) error {
			*to = at(working(c), "spec", "id")
			return nil
		}
	}
	run(t, map[string]scenario{
		"Seen": {"later sub-handlers and the parent see the changes of a sub-handler", func(w *harness) {
			var next, parent any
			w.start(onCreate("a", all(
				runs(sub("s", patches("x", "spec", "id")), sub("t", sees(&next))), sees(&parent),
			))).settle()
			w.want("seen", []any{"x", "x"}, []any{next, parent})
		}},
		"OfTheParent": {"sub-handlers see the changes of their parent in copies of their own", func(w *harness) {
			var seen []any
			look := func(_ context.Context, c *handlers.Invocation) error {
				seen = append(seen, at(working(c), "spec", "id"))
				put(working(c), "y", "spec", "id")
				return nil
			}
			w.start(onCreate("a", all(patches("x", "spec", "id"), runs(sub("s", look), sub("t", look))))).settle()
			w.want("seen", []any{"x", "x"}, seen)
			w.wantAt("all", "x", "spec", "id")
		}},
		"Exit": {"the parent gets the cause of the exit that interrupted its sub-handler", func(w *harness) {
			var p *process
			var told error
			p = w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				told = runs(sub("s", func(ctx context.Context, _ *handlers.Invocation) error {
					p.exit()
					<-ctx.Done()
					return context.Cause(ctx)
				}))(ctx, c)
				if want := context.Cause(ctx); want == nil || !errors.Is(told, want) {
					w.t.Errorf("want %v, got %v", want, told)
				}
				return told
			}))
			p.settle()
		}},
	})
}

// TestShortPauses shows that a pause ends the pass even if it is over immediately.
func TestShortPauses(t *testing.T) {
	run(t, map[string]scenario{
		"Over": {"a pass that meets a pause ends, and the next pass calls the remaining handlers", func(w *harness) {
			open := make(chan bool, 1) // a single answer; after that, the operator is not paused
			p := w.start(onCreate("a", func(context.Context, *handlers.Invocation) error {
				open <- false
				return nil
			}), onCreate("b", takes(time.Second)))
			p.handling.Gate = gate(func() bool {
				select {
				case answer := <-open:
					return answer
				default:
					return true
				}
			})
			_, _ = p.pass()
			w.wantCalls("met by the pause", "0s create a")
			p.settle()
			w.wantCalls("after it", "0s create b")
		}},
	})
}

package changes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestTransforms shows that closures run again on a newer state of the object.
func TestTransforms(t *testing.T) {
	// picky is a change that succeeds only while the field has its first value.
	picky := func(bad func() error) handlers.Func {
		return func(_ context.Context, c *handlers.Invocation) error {
			return c.Writer.AddTransform(func(body map[string]any) error {
				if at(body, "spec", "field") != "one" {
					return bad()
				}
				put(body, []any{"x"}, "spec", "list")
				return nil
			})
		}
	}
	conflicting := func(w *harness) {
		w.set([]any{}, "spec", "list")
		w.before = func(r write) error {
			if r.number == 1 {
				w.set("two", "spec", "field")
			}
			return nil
		}
	}
	run(t, map[string]scenario{
		"Error": {"a closure that fails on the newest object is a failure of its handler", func(w *harness) {
			conflicting(w)
			p := w.start(
				onCreate("a", picky(func() error { return errors.New("no") }), retries(2)),
				onCreate("b", patches("x", "spec", "id")),
			)
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create a")
			w.wantAt("all", "x", "spec", "id")
			w.wantAt("nothing of a", nil, "status", "a")
			if !w.hasLogged("failed on the object as it is by now", `"handler"="a"`) {
				w.t.Errorf("the failure is not logged: %v", w.logLines)
			}
		}},
		"Permanent": {"a permanent error of a closure on the newest object fails its handler", func(w *harness) {
			conflicting(w)
			p := w.start(onCreate("a", all(returns("r"), picky(func() error { return permanentError{} }))))
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a")
			w.wantAt("nothing of a", nil, "status", "a")
			w.wantHandled("all", "two")
		}},
		"Panic": {"a panic of a closure on the newest object is a failure of its handler", func(w *harness) {
			conflicting(w)
			p := w.start(onCreate("a", picky(func() error { panic("boom") }), retries(2)))
			p.settle()
			w.want("errors", []error(nil), p.errs)
			w.wantCalls("all", "0s create a", "1m0s create a")
		}},
		"AtOnce": {"a closure that fails on the object of the call returns its error at once", func(w *harness) {
			var told error
			p := w.start(onCreate("a", func(_ context.Context, c *handlers.Invocation) error {
				told = c.Writer.AddTransform(func(map[string]any) error { return errOrdinary })
				return nil
			}))
			p.settle()
			if !errors.Is(told, errOrdinary) {
				w.t.Errorf("want %v, got %v", errOrdinary, told)
			}
			w.wantHandled("all", "one")
		}},
	})
}

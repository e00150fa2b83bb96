package facade_test

import (
	"context"
	"errors"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func TestOnEvent(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).OnEvent("fn", func(_ context.Context, e *kopf.Event[*Widget]) error {
		e.SetResult(string(e.Type))
		e.Patch(func(w *Widget) { w.Status.Host = e.Object.Spec.Owner })
		e.Info("Seen", "it")
		return errors.New("of no consequence")
	}, kopf.InField("spec.owner"), kopf.Value("me"))
	a := call(t, op, body(map[string]any{"owner": "me"}), nil, func(a *execution.Attempt) {
		a.Call.Cause = &cause.Cause{Type: "MODIFIED", Body: a.Call.Object}
		a.Limits.Mode = handlers.ErrorsIgnored
	})
	h := a.Call.Handler
	if h.Family != handlers.Watching || h.ID != "fn/spec.owner" || h.Value == nil {
		t.Errorf("an event handler with a field: got %+v", h)
	}
	if !a.Outcome.Final || a.Outcome.Ignored == nil || a.Result() != nil {
		t.Errorf("errors are ignored, and leave no result: got %+v, %v", a.Outcome, a.Result())
	}
	if len(a.Made()) != 1 {
		t.Errorf("what it patched is kept all the same: got %d functions", len(a.Made()))
	}
	if posted := *a.Call.Events.(*recorder); len(posted) != 1 || posted[0].Reason != "Seen" {
		t.Errorf("it can post events: got %v", posted)
	}
}

// subs notes what is declared.
type subs struct {
	declared []*handlers.Handler
	err      error
}

func (s *subs) Declare(h *handlers.Handler) error { s.declared = append(s.declared, h); return nil }
func (s *subs) Run(context.Context) error         { return s.err }

func TestSubs(t *testing.T) {
	held := &subs{err: &execution.PendingError{}}
	with := func(a *execution.Attempt) { a.Call.Subs = held }
	a := call(t, one(func(
		_ context.Context, c *Change,
	) error {
		c.Sub("a b", succeed)
		return nil
	}), body(nil), nil, with)
	if !a.Outcome.Final || a.Outcome.Err == nil || len(held.declared) != 0 {
		t.Errorf("an invalid id fails for good: got %+v, %d declared", a.Outcome, len(held.declared))
	}
	a = call(t, one(func(_ context.Context, c *Change) error { c.Sub("a", nil); return nil }), body(nil), nil, with)
	if !a.Outcome.Final || a.Outcome.Err == nil {
		t.Errorf("a missing function fails for good: got %+v", a.Outcome)
	}
	a = call(t, one(func(_ context.Context, c *Change) error { c.Sub("a", succeed); return nil }), body(nil), nil)
	if a.Outcome.Err == nil {
		t.Error("where there can be no sub-handlers, they must not vanish silently")
	}
	a = call(t, one(func(ctx context.Context, c *Change) error {
		c.Sub("a", succeed, kopf.Retries(2), kopf.InField("spec.size"), kopf.NewValue(3))
		return c.RunSubs(ctx)
	}), body(nil), nil, with)
	if a.Outcome.Final || a.Outcome.Delay == nil || len(held.declared) != 1 {
		t.Errorf(
			"a handler with unfinished sub-handlers is called again: got %+v, %d declared", a.Outcome,
			len(held.declared),
		)
	}
	if sub := held.declared[0]; sub.ID != "a" || *sub.Policy.Retries != 2 || sub.To == nil {
		t.Errorf("a sub-handler has the options of any: got %+v", sub)
	}
}

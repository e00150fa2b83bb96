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

package kopf_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// TestOnEvent shows that an event handler can patch and post events, and that its errors and results are ignored.
func TestOnEvent(t *testing.T) {
	failed := errors.New("ignored")
	handler := func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
		e.SetResult(string(e.Type))
		e.Patch(func(w *Widget) { w.Status.Host = e.ID + " of " + e.Object.Spec.Owner })
		e.Info("Seen", "it")
		return failed
	}
	mine := &Widget{Spec: WidgetSpec{Owner: "me"}}
	got := facadetest.NewWatchEvent(kopf.WatchEventModified, mine, facadetest.ID("fn")).
		Call(t.Context(), handler, kopf.InField("spec.owner"), kopf.Value("me"))
	if !got.Final || !errors.Is(got.Err, failed) || got.Result != nil {
		t.Errorf("an error of an event handler is not retried and leaves no result: got %+v", got)
	}
	want := map[string]any{"status": map[string]any{"host": "fn/spec.owner of me"}}
	if d := cmp.Diff(want, got.Patch); d != "" || len(got.Events) != 1 {
		t.Errorf("a failed event handler can patch and post events: events %v, -want, +got:\n%s", got.Events, d)
	}
	other := facadetest.NewWatchEvent(kopf.WatchEventModified, &Widget{Spec: WidgetSpec{Owner: "you"}}).
		Call(t.Context(), handler, kopf.InField("spec.owner"), kopf.Value("me"))
	if other.Called {
		t.Error("an object with another value does not call the handler")
	}
}

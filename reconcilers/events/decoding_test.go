package events_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
)

// TestHandlersOfTexts shows that a function that decodes the text gets only the text, and an object as soon as it
// changes something.
func TestHandlersOfTexts(t *testing.T) {
	h := newEventHandling(newEventHandler("one", func(_ context.Context, call *handlers.Invocation) error {
		if call.Object != nil || !strings.Contains(string(call.EncodedObject.Text()), `"uid":"u1"`) {
			t.Errorf("got %v, and the text %s", call.Object, call.EncodedObject.Text())
		}
		return call.Writer.AddTransform(func(body map[string]any) error {
			body["spec"] = map[string]any{"size": int64(1)}
			return nil
		})
	}))
	h.Handlers[0].Description.ReadsText = true
	patch := h.DeliverEvents(t.Context(), []events.RawEvent{{events.Modified, newObject("a", "u1", 1)}})
	changed, err := patch.ApplyTo(map[string]any{})
	if d := cmp.Diff(map[string]any{"spec": map[string]any{"size": int64(1)}}, changed); d != "" || err != nil {
		t.Errorf("%v: -want, +got:\n%s", err, d)
	}
}

// TestUndecodableObjects shows that an object that cannot be decoded does not affect the events of other objects.
func TestUndecodableObjects(t *testing.T) {
	var called []string
	h := newEventHandling(newEventHandler("one", func(_ context.Context, call *handlers.Invocation) error {
		called = append(called, call.Cause.EventType)
		return nil
	}))
	broken, err := compact.New([]byte(`{"metadata":{"name":"a","uid":"u1"},"spec":nul}`), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { said += line }, funcr.Options{}))
	h.DeliverEvents(ctx, []events.RawEvent{{events.Added, broken}, {events.Modified, newObject("b", "u2", 1)}})
	if d := cmp.Diff([]string{events.Modified}, called); d != "" || !strings.Contains(said, "Cannot read an object") {
		t.Errorf("logged %q, -want, +called:\n%s", said, d)
	}
}

package handlers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// However many sub-handlers an object asks for, and however deep, the values of labels stay as few as registrations.
func TestLabel(t *testing.T) {
	registered := &handlers.Handler{ID: "fn"}
	sub := (&handlers.Handler{ID: "one-of-many"}).Sub(registered)
	for h, want := range map[*handlers.Handler]string{
		registered: "fn", sub: "fn/*", (&handlers.Handler{ID: "deeper"}).Sub(sub): "fn/*",
	} {
		if got := h.Label(); got != want {
			t.Errorf("%s has the label %q, want %q", h.ID, got, want)
		}
	}
}

func TestKind(t *testing.T) {
	resource := &discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Kind: "Widget"}}
	body := &cause.Cause{Object: jsontext.Of(map[string]any{"kind": "Gadget"})}
	for name, tc := range map[string]struct {
		reason string
		call   *handlers.Invocation
		want   string
	}{
		"Resource": {
			"what is watched has one kind, whatever the object says",
			&handlers.Invocation{Resource: resource, Cause: body}, "Widget",
		},
		"Object":   {"without that, the object has it", &handlers.Invocation{Cause: body}, "Gadget"},
		"Activity": {"there is no object", &handlers.Invocation{}, ""},
		"Unknown": {
			"the object has none",
			&handlers.Invocation{Cause: &cause.Cause{Object: jsontext.Of(map[string]any{"kind": int64(1)})}}, "",
		},
		"Admission": {
			"a request may have anything for it",
			&handlers.Invocation{Cause: body, Admission: &handlers.Admission{}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.call.Kind(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

package handlers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// TestLabel shows that sub-handlers, however many and deep, add only one label value for each registration.
func TestLabel(t *testing.T) {
	registered := &handlers.Handler{ID: "fn"}
	sub := (&handlers.Handler{ID: "one-of-many"}).AsSubHandler(registered)
	for h, want := range map[*handlers.Handler]string{
		registered: "fn", sub: "fn/*", (&handlers.Handler{ID: "deeper"}).AsSubHandler(sub): "fn/*",
	} {
		if got := h.MetricsLabel(); got != want {
			t.Errorf("%s has the label %q, want %q", h.ID, got, want)
		}
	}
}

func TestKind(t *testing.T) {
	resource := &discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Kind: "Widget"}}
	body := &cause.Cause{Object: jsontext.NewFromValue(map[string]any{"kind": "Gadget"})}
	for name, tc := range map[string]struct {
		reason string
		call   *handlers.Invocation
		want   string
	}{
		"Resource": {
			"the kind of the watched resource counts, whatever the object contains",
			&handlers.Invocation{Resource: resource, Cause: body}, "Widget",
		},
		"Object":   {"without a resource, the kind of the object counts", &handlers.Invocation{Cause: body}, "Gadget"},
		"Activity": {"an activity has no kind", &handlers.Invocation{}, ""},
		"Unknown": {
			"an object with a malformed kind has no kind",
			&handlers.Invocation{Cause: &cause.Cause{Object: jsontext.NewFromValue(map[string]any{"kind": int64(1)})}},
			"",
		},
		"Admission": {
			"an admission request has no kind, because clients can send any",
			&handlers.Invocation{Cause: body, Admission: &handlers.AdmissionRequest{}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.call.Kind(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

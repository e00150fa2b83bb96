package changes_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// idleBackground is a background without any tasks.
type idleBackground struct{ changes.BackgroundRunner }

func TestLeavesAlone(t *testing.T) {
	const finalizer, prefix = "example.org/finalizer", "op.example.org"
	annotated := func(key string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "a", "annotations": map[string]any{key: "y"}}}
	}
	plain := annotated("other.example.org/x")
	tests := map[string]struct {
		reason string
		with   func(h *changes.ChangeHandling)
		body   map[string]any
		want   bool
	}{
		"Plain": {"an object without memory is ignored if there is nothing to do for its kind", nil, plain, true},
		"Handlers": {
			"an object is not ignored if its kind has a handler of changes",
			func(h *changes.ChangeHandling) {
				h.Handlers = []*adapters.HandlerChain{adapters.New(&handlers.Handler{ID: "h"}, nil)}
			}, plain, false,
		},
		"Background": {
			"an object is not ignored if its kind has background tasks",
			func(h *changes.ChangeHandling) { h.Background = idleBackground{} }, plain, false,
		},
		"Conditions": {
			"an object is not ignored if its kind reports conditions",
			func(h *changes.ChangeHandling) { h.Conditions = &changes.Conditions{} },
			plain, false,
		},
		"Finalizer": {
			"an object with a leftover finalizer is not ignored", nil,
			map[string]any{"metadata": map[string]any{"name": "a", "finalizers": []any{finalizer}}}, false,
		},
		"Annotations": {
			"an object with annotations of the engine is not ignored", nil,
			annotated(prefix + "/x"), false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := &changes.ChangeHandling{
				HandledKind:    kind.HandledKind{Settings: kind.Settings{Finalizer: finalizer}},
				InterimStorage: changes.NewInterimStorage(prefix, ""),
			}
			if tc.with != nil {
				tc.with(h)
			}
			if got := h.IgnoresObject(compacttest.NewObject(tc.body)); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

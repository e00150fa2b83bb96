package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

type object = map[string]any

// runVectors compares the results of all cases of a family with the expected ones.
func runVectors(t *testing.T, family string, run func(t *testing.T, input vectors.Fields) (any, error)) {
	t.Helper()
	vectors.Run(t, family, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		got, err := run(t, input)
		if want.Failed(t, got, err) {
			return
		}
		if !diff.Equal(want.Value, got) {
			t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, got))
		}
	})
}

// TestVectorsHandlerID covers the ids of handlers. The names of Python functions are only a reference, since ids are
// explicit in Go.
func TestVectorsHandlerID(t *testing.T) {
	runVectors(t, "handler_id", func(t *testing.T, input vectors.Fields) (any, error) {
		d := vectors.Known(
			t, input, "on", "fn", "id", "field", "value", "old", "new", "callable", "file", "line", "sub", "parent",
			"reason",
		)
		if d["callable"] != nil {
			t.Skip("how Python's functions are called (the case is a reference)")
		}
		if declared.Activity(d.Text("on", "")) {
			return map[string]any{"id": declared.ID(d)}, nil
		}
		one := map[string]any{}
		for _, key := range []string{"on", "fn", "id", "field", "value", "old", "new"} {
			if value, given := d[key]; given {
				one[key] = value
			}
		}
		if d["sub"] == nil {
			all, err := declared.Handlers(t, []any{one}, declared.Resource(t, nil))
			if err != nil {
				return nil, err
			}
			return map[string]any{"id": all[0].Handler.ID}, nil
		}
		delete(one, "on")
		parent := &handlers.Handler{ID: d.Text("parent", ""), Reason: cause.Reason(d.Text("reason", "update"))}
		parent.NeedsChange = parent.Reason == cause.Update || parent.Reason == "field"
		h, _, err := declared.Sub(t, parent, one)
		if err != nil {
			return nil, err
		}
		return map[string]any{"id": h.AsSubHandler(parent).ID}, nil
	})
}

package cause_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// observed is the input of one vector. Unknown fields fail the test.
type observed struct {
	Event struct {
		Type   *string        `json:"type"`
		Object map[string]any `json:"object"`
	} `json:"event"`
	Old       map[string]any `json:"old"`
	New       map[string]any `json:"new"`
	Initial   bool           `json:"initial"`
	Finalizer string         `json:"finalizer"`
}

func TestVectorsCause(t *testing.T) {
	vectors.Run(t, "cause", func(t *testing.T, in observed, want vectors.Expected) {
		finalizer := in.Finalizer
		if finalizer == "" {
			finalizer = "kopf.zalando.org/KopfFinalizerMarker"
		}
		got := cause.Detect(cause.Observation{
			Body: in.Event.Object, Gone: in.Event.Type != nil && *in.Event.Type == "DELETED",
			Finalizer: finalizer, Old: in.Old, New: in.New, Initial: in.Initial,
		})
		result := map[string]any{"reason": string(got.Reason), "initial": got.Initial, "deleted": got.Deleting}
		if d := cmp.Diff(want.Value, result); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

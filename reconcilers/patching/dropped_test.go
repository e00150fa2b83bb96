package patching_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// observed is what an observer was told.
type observed struct{ fields []diff.Path }

func (o *observed) Dropped(_ context.Context, fields []diff.Path) {
	o.fields = append(o.fields, fields...)
}

// A server that has a schema takes what it does not know for nothing.
func TestDropped(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		reason string
		knows  []string // fields of the status that the schema has
		status m
		want   []diff.Path
	}{
		"AllKnown": {"nothing is lost", []string{"a", "b"}, m{"a": int64(1), "b": m{"c": "d"}}, nil},
		"Unknown": {
			"the field is named, by its place", []string{"a"},
			m{"a": int64(1), "create": m{"x": int64(1), "y": int64(2)}}, []diff.Path{{"status", "create"}},
		},
		"Removal": {"what is to go cannot be dropped", nil, m{"a": nil, "b": m{"c": nil}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.change(func(r *memapi.Resource) { r.StatusFields = tc.knows })
			writer, seen := engineWriter(t, api), &observed{}
			writer.Observer = seen
			result, err := writer.Apply(
				t.Context(), patching.Target{Body: object(), StatusSubresource: true},
				patching.Patch{Merge: m{"status": tc.status}},
			)
			if d := cmp.Diff(tc.want, result.Dropped); d != "" || err != nil {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, err, d)
			}
			if d := cmp.Diff(tc.want, seen.fields); d != "" {
				t.Errorf("%s: the observer: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

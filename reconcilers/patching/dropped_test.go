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
type observed struct {
	fields []diff.Path
	calls  int
}

func (o *observed) Dropped(_ context.Context, fields []diff.Path) {
	o.fields = append(o.fields, fields...)
	o.calls++
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
		"UnknownText": {
			"so is one that is not a mapping", []string{"a"}, m{"b": "text"}, []diff.Path{{"status", "b"}},
		},
		"UnknownHollow": {
			"mappings without values set nothing, at any depth", []string{"a"},
			m{"b": m{"c": nil, "d": m{}, "e": m{"f": m{}}}}, nil,
		},
		"UnknownBelow": {
			"a value counts, whatever is beside it", []string{"a"}, m{"b": m{"c": nil, "d": m{"e": "x"}}},
			[]diff.Path{{"status", "b"}},
		},
		"Removal": {"what is to go cannot be dropped", nil, m{"a": nil, "b": m{"c": nil}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.change(func(r *memapi.Resource) { r.StatusFields = tc.knows })
			writer, seen := writerFor(api), &observed{}
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
			if seen.calls > len(tc.want) {
				t.Errorf("%s: the observer was called for nothing", tc.reason)
			}
		})
	}
}

// What was not written was not dropped either, and who does not ask is not told.
func TestNothingIsDroppedOfWhatFails(t *testing.T) {
	type m = map[string]any
	for name, tc := range map[string]struct {
		reason  string
		failure any
		patch   m
		want    []diff.Path
	}{
		"RefusedStatus": {"the status is refused", memapi.Refusal(422, "status.b"), m{"status": m{"b": "x"}}, nil},
		"FailedMain":    {"the server fails", int64(500), m{"spec": m{"zz": "x"}}, nil},
		"Served":        {"nobody listens", nil, m{"status": m{"b": "x"}}, []diff.Path{{"status", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.change(func(r *memapi.Resource) { r.StatusFields = []string{"s"} })
			api.failures = []any{tc.failure}
			target := patching.Target{Body: object(), StatusSubresource: true}
			result, _ := writerFor(api).Apply(t.Context(), target, patching.Patch{Merge: tc.patch})
			if d := cmp.Diff(tc.want, result.Dropped); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

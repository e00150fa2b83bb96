package patching_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// dropRecorder records the calls of an observer.
type dropRecorder struct {
	fields []diff.Path
	calls  int
}

func (o *dropRecorder) record(_ context.Context, fields []diff.Path) {
	o.fields = append(o.fields, fields...)
	o.calls++
}

// TestDropped shows that status fields unknown to the schema are reported: the server drops them silently.
func TestDropped(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		reason string
		knows  []string // fields of the status in the schema
		status m
		want   []diff.Path
	}{
		"AllKnown": {"known fields are not reported", []string{"a", "b"}, m{"a": int64(1), "b": m{"c": "d"}}, nil},
		"Unknown": {
			"an unknown field is reported by its path", []string{"a"},
			m{"a": int64(1), "create": m{"x": int64(1), "y": int64(2)}}, []diff.Path{{"status", "create"}},
		},
		"UnknownText": {
			"an unknown field that is not a mapping is reported",
			[]string{"a"}, m{"b": "text"}, []diff.Path{{"status", "b"}},
		},
		"UnknownHollow": {
			"an unknown mapping without values is not reported, at any depth", []string{"a"},
			m{"b": m{"c": nil, "d": m{}, "e": m{"f": m{}}}}, nil,
		},
		"UnknownBelow": {
			"an unknown mapping with a value is reported, whatever else it contains",
			[]string{"a"}, m{"b": m{"c": nil, "d": m{"e": "x"}}},
			[]diff.Path{{"status", "b"}},
		},
		"Removal": {"a removed field is not reported", nil, m{"a": nil, "b": m{"c": nil}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.change(func(r *memapi.Resource) { r.StatusFields = tc.knows })
			writer, seen := writerFor(api), &dropRecorder{}
			writer.OnDropped = seen.record
			result, err := writer.Apply(
				t.Context(), patching.Target{Body: object(), StatusSubresource: true},
				patching.Patch{Merge: m{"status": tc.status}},
			)
			if d := cmp.Diff(tc.want, result.DroppedFields); d != "" || err != nil {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, err, d)
			}
			if d := cmp.Diff(tc.want, seen.fields); d != "" {
				t.Errorf("%s: the observer: -want, +got:\n%s", tc.reason, d)
			}
			if seen.calls > len(tc.want) {
				t.Errorf("%s: the observer was called without dropped fields", tc.reason)
			}
		})
	}
}

// TestNothingIsDroppedOfWhatFails shows that failed writes report no dropped fields, and that an observer is optional.
func TestNothingIsDroppedOfWhatFails(t *testing.T) {
	type m = map[string]any
	for name, tc := range map[string]struct {
		reason  string
		failure any
		patch   m
		want    []diff.Path
	}{
		"RefusedStatus": {"a refused status reports no dropped fields",
			memapi.NewRefusal(422, "status.b"), m{"status": m{"b": "x"}}, nil},
		"FailedMain": {"a failed request reports no dropped fields", int64(500), m{"spec": m{"zz": "x"}}, nil},
		"Served": {"a successful write returns dropped fields without an observer",
			nil, m{"status": m{"b": "x"}}, []diff.Path{{"status", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.change(func(r *memapi.Resource) { r.StatusFields = []string{"s"} })
			api.failures = []any{tc.failure}
			target := patching.Target{Body: object(), StatusSubresource: true}
			result, _ := writerFor(api).Apply(t.Context(), target, patching.Patch{Merge: tc.patch})
			if d := cmp.Diff(tc.want, result.DroppedFields); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

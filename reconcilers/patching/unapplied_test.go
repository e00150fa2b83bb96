package patching_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestUnapplied(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		reason        string
		merge, answer m
		want          diff.Diff
	}{
		"Pruned": {
			reason: "The schema did not know the field.",
			merge:  m{"status": m{"fn": "x"}}, answer: m{"status": m{"other": "y"}},
			want: diff.Diff{{Op: diff.Remove, Path: diff.Path{"status", "fn"}, Old: "x"}},
		},
		"NotRemoved": {
			reason: "A removal without effect, by a default of the schema for example.",
			merge:  m{"spec": m{"a": nil}}, answer: m{"spec": m{"a": "default"}},
			want: diff.Diff{{Op: diff.Add, Path: diff.Path{"spec", "a"}, New: "default"}},
		},
		"Nothing": {reason: "Nothing was asked for.", answer: m{"spec": m{}}},
		"Applied": {
			reason: "What is there beside does not matter.", merge: m{"spec": m{"a": int64(1), "b": nil}},
			answer: m{"spec": m{"a": 1.0, "c": "x"}, "kind": "K"},
		},
		"EmptyMeta": {
			reason: "The server drops empty ones.",
			merge:  m{"metadata": m{"labels": m{}, "annotations": m{}, "finalizers": []any{}}},
			answer: m{"metadata": m{"name": "n"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, patching.Unapplied(tc.merge, tc.answer)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

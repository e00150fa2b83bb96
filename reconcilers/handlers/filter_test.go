package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func TestMetadataFilters(t *testing.T) {
	tests := map[string]struct {
		reason   string
		selector string
		values   any
		want     bool
	}{
		"NotThere": {reason: "no labels, no match", selector: "tier=prod"},
		"Other":    {reason: "the value counts", selector: "tier=prod", values: object{"tier": "test"}},
		"OneOfTwo": {
			reason: "all requirements must hold", selector: "tier=prod,!paused",
			values: object{"tier": "prod", "paused": ""},
		},
		"NotANumber": {
			reason: "what is no string is no label: an API server would not have it", selector: "tier",
			values: object{"tier": int64(1)},
		},
		"NotAMapping": {reason: "labels that are none are none", selector: "tier", values: "tier"},
		"In": {
			reason: "sets are Kubernetes' own", selector: "tier in (prod,test)", values: object{"tier": "test"},
			want: true,
		},
		"NotInIfNotThere": {
			reason: "so it is that an absent label is not in a set", selector: "tier notin (prod)", want: true,
		},
		"UnequalIfNotThere": {reason: "and that it differs from any value", selector: "tier!=prod", want: true},
		"Empty": {
			reason: "an empty value is there", selector: "tier,tier=", values: object{"tier": ""}, want: true,
		},
		"Everything": {reason: "an empty selector is none", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			for place, filter := range map[string]handlers.Filter{
				"labels": handlers.Labels(selector), "annotations": handlers.Annotations(selector),
			} {
				body := object{"metadata": object{place: tc.values}}
				if tc.values == nil {
					body = object{}
				}
				got, err := filter(t.Context(), &cause.Cause{Object: jsontext.Of(body)})
				if err != nil || got != tc.want {
					t.Errorf("%s: %s: got %v, error %v", tc.reason, place, got, err)
				}
			}
		})
	}
}

func TestMetadataFiltersKeepApart(t *testing.T) {
	selector := labels.SelectorFromSet(labels.Set{"tier": "prod"})
	for place, filter := range map[string]handlers.Filter{
		"annotations": handlers.Labels(selector), "labels": handlers.Annotations(selector),
	} {
		c := &cause.Cause{Object: jsontext.Of(object{"metadata": object{place: object{"tier": "prod"}}})}
		if got, err := filter(t.Context(), c); err != nil || got {
			t.Errorf("what stands in the %s is nothing to the other filter: got %v, error %v", place, got, err)
		}
	}
}

func TestView(t *testing.T) {
	c := cause.Detect(cause.Observation{
		Body: object{}, Old: object{
			"spec": object{"a": object{"x": "1"}, "b": "2"},
		}, New: object{"spec": object{"a": object{"x": "2"}, "b": "3"}},
	})
	created := cause.Detect(cause.Observation{Body: object{}, New: object{"spec": object{"a": "x"}}})
	veiled := *c
	veiled.Veiled = []diff.Path{{"spec", "a", "x"}}
	tests := map[string]struct {
		reason      string
		cause       *cause.Cause
		field       diff.Path
		before, now any
		changes     diff.Diff
	}{
		"Field": {
			reason: "a handler of a field sees that alone, with paths from there", cause: c, field: diff.Path{
				"spec", "a",
			},
			before: object{"x": "1"}, now: object{"x": "2"}, changes: diff.Diff{
				{Op: diff.Change, Path: diff.Path{"x"}, Old: "1", New: "2"},
			},
		},
		"Leaf": {
			reason: "at the field itself, the path is empty", cause: c, field: diff.Path{"spec", "b"},
			before: "2", now: "3", changes: diff.Diff{{Op: diff.Change, Old: "2", New: "3"}},
		},
		"Veiled": {
			reason: "what is not remembered is not shown as a change, other values are", cause: &veiled,
			field: diff.Path{"spec", "a"}, before: object{"x": "1"}, now: object{"x": "2"},
			changes: diff.Diff{{Op: diff.Change, Path: diff.Path{"x"}}},
		},
		"Nowhere": {reason: "an absent field has no values and no changes", cause: c, field: diff.Path{"spec", "z"}},
		"Created": {
			reason: "the addition of the whole is one of the field", cause: created, field: diff.Path{"spec", "a"},
			now: "x", changes: diff.Diff{{Op: diff.Add, New: "x"}},
		},
		"CreatedWhole": {
			reason: "never handled is a null, not an empty mapping", cause: created,
			now: object{"spec": object{"a": "x"}}, changes: diff.Diff{
				{Op: diff.Add, New: object{"spec": object{"a": "x"}}},
			},
		},
		"Whole": {
			reason: "without a field, all is seen", cause: c, before: c.Old, now: c.New, changes: c.Diff,
		},
		"Nothing": {
			reason: "families without essences see none",
			cause:  &cause.Cause{Object: jsontext.Of(object{"spec": object{}})},
			field:  diff.Path{"spec"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, now, changes := (&handlers.Handler{Field: tc.field}).View(tc.cause)
			want, got := []any{tc.before, tc.now, tc.changes}, []any{before, now, changes}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

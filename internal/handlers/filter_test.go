package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestMetadataFilters(t *testing.T) {
	tests := map[string]struct {
		reason   string
		selector string
		values   any
		want     bool
	}{
		"NotThere": {reason: "a missing label does not match", selector: "tier=prod"},
		"Other": {reason: "a label with another value does not match",
			selector: "tier=prod", values: object{"tier": "test"}},
		"OneOfTwo": {
			reason: "all requirements of a selector must match", selector: "tier=prod,!paused",
			values: object{"tier": "prod", "paused": ""},
		},
		"NotANumber": {
			reason: "a value that is not a string is not a label", selector: "tier",
			values: object{"tier": int64(1)},
		},
		"NotAMapping": {reason: "labels that are not a mapping do not match", selector: "tier", values: "tier"},
		"In": {
			reason:   "a label with a value of a set matches",
			selector: "tier in (prod,test)", values: object{"tier": "test"},
			want: true,
		},
		"NotInIfNotThere": {
			reason: "a missing label is not in any set", selector: "tier notin (prod)", want: true,
		},
		"UnequalIfNotThere": {reason: "a missing label differs from any value", selector: "tier!=prod", want: true},
		"Empty": {
			reason:   "a label with an empty value is present",
			selector: "tier,tier=", values: object{"tier": ""}, want: true,
		},
		"Everything": {reason: "an empty selector matches any object", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			for place, filter := range map[string]handlers.Filter{
				"labels": handlers.MatchLabels(selector), "annotations": handlers.MatchAnnotations(selector),
			} {
				body := object{"metadata": object{place: tc.values}}
				if tc.values == nil {
					body = object{}
				}
				got, err := filter(t.Context(), &cause.Cause{Object: jsontext.NewFromValue(body)})
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
		"annotations": handlers.MatchLabels(selector), "labels": handlers.MatchAnnotations(selector),
	} {
		c := &cause.Cause{Object: jsontext.NewFromValue(object{"metadata": object{place: object{"tier": "prod"}}})}
		if got, err := filter(t.Context(), c); err != nil || got {
			t.Errorf("the %s match the other filter: got %v, error %v", place, got, err)
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
	veiled.VeiledPaths = []diff.Path{{"spec", "a", "x"}}
	tests := map[string]struct {
		reason      string
		cause       *cause.Cause
		field       diff.Path
		before, now any
		changes     diff.Diff
	}{
		"Field": {
			reason: "a handler of a field sees only this field, with paths relative to it", cause: c, field: diff.Path{
				"spec", "a",
			},
			before: object{"x": "1"}, now: object{"x": "2"}, changes: diff.Diff{
				{Op: diff.Change, Path: diff.Path{"x"}, Old: "1", New: "2"},
			},
		},
		"Leaf": {
			reason: "a change of the field itself has an empty path", cause: c, field: diff.Path{"spec", "b"},
			before: "2", now: "3", changes: diff.Diff{{Op: diff.Change, Old: "2", New: "3"}},
		},
		"Veiled": {
			reason: "a veiled value is not shown in the change", cause: &veiled,
			field: diff.Path{"spec", "a"}, before: object{"x": "1"}, now: object{"x": "2"},
			changes: diff.Diff{{Op: diff.Change, Path: diff.Path{"x"}}},
		},
		"Nowhere": {reason: "an absent field has no values and no changes", cause: c, field: diff.Path{"spec", "z"}},
		"Created": {
			reason: "the creation of the object adds the field", cause: created, field: diff.Path{"spec", "a"},
			now: "x", changes: diff.Diff{{Op: diff.Add, New: "x"}},
		},
		"CreatedWhole": {
			reason: "the old state of a new object is null, not an empty mapping", cause: created,
			now: object{"spec": object{"a": "x"}}, changes: diff.Diff{
				{Op: diff.Add, New: object{"spec": object{"a": "x"}}},
			},
		},
		"Whole": {
			reason: "a handler without a field sees all changes", cause: c, before: c.Old, now: c.New, changes: c.Diff,
		},
		"Nothing": {
			reason: "a cause without essences has no values and no changes",
			cause:  &cause.Cause{Object: jsontext.NewFromValue(object{"spec": object{}})},
			field:  diff.Path{"spec"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, now, changes := (&handlers.Handler{Field: tc.field}).ViewCause(tc.cause)
			want, got := []any{tc.before, tc.now, tc.changes}, []any{before, now, changes}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

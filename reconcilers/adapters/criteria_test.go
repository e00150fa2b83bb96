package adapters_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestFieldCriteria shows when a handler's field counts as present and as changed.
func TestFieldCriteria(t *testing.T) {
	spec := func(a any) object { return object{"spec": object{"a": a}} }
	bare := object{"spec": object{}}
	tests := map[string]struct {
		reason      string
		family      handlers.Family
		body        object
		before, now object
		present     bool
		changed     bool
	}{
		"Nowhere": {reason: "a field that is absent before and after does not match", before: bare, now: bare},
		"Unreachable": {
			reason: "a field within something else than a mapping is absent", before: object{"spec": "a"},
			now: object{"spec": []any{}},
		},
		"NeverHandled": {
			reason: "on a creation, a present field counts as changed", now: spec("x"), present: true, changed: true,
		},
		"NeverThere": {reason: "on a creation, an absent field does not match", now: bare},
		"Added": {reason: "a field that appears is a change", before: bare, now: spec("x"), present: true,
			changed: true},
		"Removed": {
			reason: "a field that disappears is a change, and matches", before: spec("x"), now: bare,
			present: true, changed: true,
		},
		"Same": {reason: "an equal value is not a change", before: spec("x"), now: spec("x"), present: true},
		"SameNumber": {reason: "an integer equals the float of the same value", before: spec(int64(1)), now: spec(1.0),
			present: true},
		"OtherType": {
			reason: "a boolean is not equal to a number, unlike in Python", before: spec(int64(1)), now: spec(true),
			present: true,
			changed: true,
		},
		"NullAppears": {
			reason: "a null that appears is a change of the field, unlike in a diff", before: bare, now: spec(nil),
			present: true, changed: true,
		},
		"NullStays": {reason: "a null that stays is not a change", before: spec(nil), now: spec(nil), present: true},
		"Inside": {
			reason: "a change within the field is a change of the field", before: spec(object{"b": "x"}),
			now: spec(object{"b": "y"}), present: true, changed: true,
		},
		"EssenceNotBody": {
			reason: "changes match the essence: a field that is only in the body is absent", body: spec("x"),
			before: bare,
			now:    bare,
		},
		"BodyNotEssence": {
			reason: "other families match the body", family: handlers.Watching,
			body: spec("x"), present: true, changed: true,
		},
		"NotInBody": {
			reason: "other families do not match the essence", family: handlers.Watching, body: bare,
			now: spec("x"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := withReason(&cause.Cause{Object: jsontext.NewFromValue(tc.body), Old: tc.before, New: tc.now},
				cause.Update)
			h := &handlers.Handler{ID: "fn", Family: tc.family, Field: diff.Path{"spec", "a"}, NeedsChange: true}
			_, present, err := h.MatchesObject(t.Context(), c)
			if err != nil || present != tc.present {
				t.Errorf("%s: present is %v, error %v", tc.reason, present, err)
			}
			selected, err := adapters.Select(t.Context(), newChains(h), c, nil)
			if err != nil || (len(selected) > 0) != tc.changed {
				t.Errorf("%s: changed is %v, error %v", tc.reason, len(selected) > 0, err)
			}
		})
	}
}

func TestMatchingTakesAFunctionOnce(t *testing.T) {
	all := []*handlers.Handler{
		{ID: "a", Family: handlers.Background, FunctionKey: 1}, {ID: "b", Family: handlers.Background, FunctionKey: 1},
		{ID: "a", Family: handlers.Background, FunctionKey: 1}, {ID: "a", Family: handlers.Background, FunctionKey: 2},
		{ID: "c", Family: handlers.Background}, {ID: "c", Family: handlers.Background},
	}
	matching, err := adapters.Select(t.Context(), newChains(all...),
		&cause.Cause{Object: jsontext.NewFromValue(object{})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{"a", "b", "a", "c", "c"}, ids(matching)); d != "" {
		t.Errorf(
			"a function with an id must run once, and unknown functions must count as different: -want, "+
				"+got:\n%s",
			d,
		)
	}
}

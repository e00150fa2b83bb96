package adapters_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// The criteria of a handler's field, as seen through the doors that ask for them.
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
		"Nowhere": {reason: "a field that is on neither side is of no interest", before: bare, now: bare},
		"Unreachable": {
			reason: "a field behind something else than a mapping is not there", before: object{"spec": "a"},
			now: object{"spec": []any{}},
		},
		"NeverHandled": {
			reason: "on a creation, all that is there is new", now: spec("x"), present: true, changed: true,
		},
		"NeverThere": {reason: "on a creation, what is not there is not", now: bare},
		"Added":      {reason: "appearing is a change", before: bare, now: spec("x"), present: true, changed: true},
		"Removed": {
			reason: "so is disappearing: a field that was there is of interest", before: spec("x"), now: bare,
			present: true, changed: true,
		},
		"Same":       {reason: "a value that stays is no change", before: spec("x"), now: spec("x"), present: true},
		"SameNumber": {reason: "numbers are of one type", before: spec(int64(1)), now: spec(1.0), present: true},
		"OtherType": {
			reason: "a boolean is no number, unlike in Python", before: spec(int64(1)), now: spec(true), present: true,
			changed: true,
		},
		"NullAppears": {
			reason: "a null is a value here, though no difference in a diff", before: bare, now: spec(nil),
			present: true, changed: true,
		},
		"NullStays": {reason: "a null that stays is no change", before: spec(nil), now: spec(nil), present: true},
		"Inside": {
			reason: "a change inside of the field is one of the field", before: spec(object{"b": "x"}),
			now: spec(object{"b": "y"}), present: true, changed: true,
		},
		"EssenceNotBody": {
			reason: "causes are about essences: what is in the body alone is nothing", body: spec("x"), before: bare,
			now: bare,
		},
		"BodyNotEssence": {
			reason: "other families have no essences: they look at the body", family: handlers.Watching,
			body: spec("x"), present: true,
		},
		"NotInBody": {
			reason: "other families have no essences: they look at the body", family: handlers.Watching, body: bare,
			now: spec("x"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := stating(&cause.Cause{Object: jsontext.Of(tc.body), Old: tc.before, New: tc.now}, cause.Update)
			h := &handlers.Handler{ID: "fn", Family: tc.family, Field: diff.Path{"spec", "a"}, NeedsChange: true}
			_, present, err := h.Prematch(t.Context(), c)
			if err != nil || present != tc.present {
				t.Errorf("%s: present is %v, error %v", tc.reason, present, err)
			}
			selected, err := adapters.Select(t.Context(), made(h), c, nil)
			if err != nil || (len(selected) > 0) != tc.changed {
				t.Errorf("%s: changed is %v, error %v", tc.reason, len(selected) > 0, err)
			}
		})
	}
}

func TestMatchingTakesAFunctionOnce(t *testing.T) {
	all := []*handlers.Handler{
		{ID: "a", Family: handlers.Spawning, Function: 1}, {ID: "b", Family: handlers.Spawning, Function: 1},
		{ID: "a", Family: handlers.Spawning, Function: 1}, {ID: "a", Family: handlers.Spawning, Function: 2},
		{ID: "c", Family: handlers.Spawning}, {ID: "c", Family: handlers.Spawning},
	}
	matching, err := adapters.Matching(t.Context(), made(all...), &cause.Cause{Object: jsontext.Of(object{})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{"a", "b", "a", "c", "c"}, ids(matching)); d != "" {
		t.Errorf(
			"the same function under the same id runs once; functions that are not known are not the same: -want, "+
				"+got:\n%s",
			d,
		)
	}
}

package handlers_test

import (
	"context"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestSight(t *testing.T) {
	at := func(path ...string) []requirements.Criterion { return []requirements.Criterion{{Path: path}} }
	tests := map[string]struct {
		reason string
		field  diff.Path
		words  []requirements.Criterion
		silent bool // there is a filter of which nothing is said
		want   requirements.Sight
	}{
		"Nothing":    {"all objects are of interest", nil, nil, false, requirements.SeesEssence},
		"Label":      {"it is of the essence", nil, at("metadata", "labels", "a"), false, requirements.SeesEssence},
		"Annotation": {"so is this", nil, at("metadata", "annotations"), false, requirements.SeesEssence},
		"Field":      {"and a field of the spec", diff.Path{"spec", "a"}, nil, false, requirements.SeesEssence},
		"Status":     {"the status is not", diff.Path{"status"}, nil, false, requirements.SeesObject},
		"Generation": {"nor is it", nil, at("metadata", "generation"), false, requirements.SeesObject},
		"Metadata":   {"the generation is in it", diff.Path{"metadata"}, nil, false, requirements.SeesObject},
		"Function":   {"it may look anywhere", nil, at(), false, requirements.SeesObject},
		"Widest": {
			"one that sees more decides", diff.Path{"status"}, at("metadata", "labels"), false, requirements.SeesObject,
		},
		"Change": {
			"it may ask whether there is any", nil, []requirements.Criterion{{OfChange: true}}, false,
			requirements.SeesChange,
		},
		"Silent": {"nobody knows", nil, nil, true, requirements.SeesChange},
	}
	for name, tc := range tests {
		h := &handlers.Handler{Field: tc.field, Words: requirements.Words{Filters: tc.words}}
		always := func(context.Context, *cause.Cause) (bool, error) { return true, nil }
		for range tc.words {
			h.Filters = append(h.Filters, always)
		}
		if tc.silent {
			h.Filters = append(h.Filters, always)
		}
		if got := h.Sight(); got != tc.want {
			t.Errorf("%s: %s: got %d, want %d", name, tc.reason, got, tc.want)
		}
	}
}

func TestLeaves(t *testing.T) {
	with := func(value any) map[string]any { return map[string]any{"spec": map[string]any{"a": value}} }
	field := diff.Path{"spec", "a"}
	present := handlers.Handler{Field: field}
	equals := func(value string) handlers.Handler {
		return handlers.Handler{Field: field, Value: handlers.Equals(value)}
	}
	tests := map[string]struct {
		reason   string
		h        handlers.Handler
		old, now map[string]any
		want     bool
	}{
		"Removed": {"there is none any more", present, with("x"), map[string]any{}, true},
		"Changed": {"it is another one", equals("x"), with("x"), with("y"), true},
		"Kept":    {"it is there as before", present, with("x"), with("y"), false},
		"Came":    {"it is as it must be now", equals("y"), with("x"), with("y"), false},
		"Never":   {"it was of no interest before", equals("z"), with("x"), with("y"), false},
		"New":     {"there was no object before", present, nil, map[string]any{}, false},
		"NoField": {"the object as a whole is there", handlers.Handler{}, with("x"), with("y"), false},
		"NoChange": {
			"other families know of none", handlers.Handler{Field: field, Family: handlers.Spawning}, with("x"), nil,
			false,
		},
	}
	for name, tc := range tests {
		if got := tc.h.Leaves(&cause.Cause{Old: tc.old, New: tc.now}); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

package handlers_test

import (
	"context"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestSight(t *testing.T) {
	at := func(path ...string) []handlers.Criterion { return []handlers.Criterion{{Path: path}} }
	tests := map[string]struct {
		reason string
		field  diff.Path
		words  []handlers.Criterion
		silent bool // adds a filter without a description
		want   handlers.Sight
	}{
		"Nothing": {"a handler without criteria sees the essence", nil, nil, false, handlers.SeesEssence},
		"Label": {"a label is a part of the essence",
			nil, at("metadata", "labels", "a"), false, handlers.SeesEssence},
		"Annotation": {"an annotation is a part of the essence",
			nil, at("metadata", "annotations"), false, handlers.SeesEssence},
		"Field": {"a field of the spec is a part of the essence",
			diff.Path{"spec", "a"}, nil, false, handlers.SeesEssence},
		"Status": {"the status is not a part of the essence",
			diff.Path{"status"}, nil, false, handlers.SeesObject},
		"Generation": {"the generation is not a part of the essence",
			nil, at("metadata", "generation"), false, handlers.SeesObject},
		"Metadata": {"the metadata contain the generation",
			diff.Path{"metadata"}, nil, false, handlers.SeesObject},
		"Function": {"a function can look anywhere in the object", nil, at(), false, handlers.SeesObject},
		"Widest": {
			"the criterion with the widest sight decides",
			diff.Path{"status"}, at("metadata", "labels"), false, handlers.SeesObject,
		},
		"Change": {
			"a criterion of the change sees whether there is one",
			nil, []handlers.Criterion{{OfChange: true}}, false,
			handlers.SeesChange,
		},
		"Silent": {"a filter without a description may look at the change", nil, nil, true, handlers.SeesChange},
	}
	for name, tc := range tests {
		h := &handlers.Handler{Field: tc.field, FilterDescriptions: handlers.Words{Filters: tc.words}}
		always := func(context.Context, *cause.Cause) (bool, error) { return true, nil }
		for range tc.words {
			h.Filters = append(h.Filters, always)
		}
		if tc.silent {
			h.Filters = append(h.Filters, always)
		}
		if got := h.CriteriaSight(); got != tc.want {
			t.Errorf("%s: %s: got %d, want %d", name, tc.reason, got, tc.want)
		}
	}
}

func TestLeaves(t *testing.T) {
	with := func(value any) map[string]any { return map[string]any{"spec": map[string]any{"a": value}} }
	field := diff.Path{"spec", "a"}
	present := handlers.Handler{Field: field}
	equals := func(value string) handlers.Handler {
		return handlers.Handler{Field: field, Value: handlers.EqualTo(value)}
	}
	tests := map[string]struct {
		reason   string
		h        handlers.Handler
		old, now map[string]any
		want     bool
	}{
		"Removed": {"a removed field leaves the handler", present, with("x"), map[string]any{}, true},
		"Changed": {"a value that does not match any more leaves the handler", equals("x"), with("x"), with("y"), true},
		"Kept":    {"a changed field does not leave the handler", present, with("x"), with("y"), false},
		"Came":    {"a value that matches now does not leave the handler", equals("y"), with("x"), with("y"), false},
		"Never":   {"a value that never matched does not leave the handler", equals("z"), with("x"), with("y"), false},
		"New":     {"a new object does not leave the handler", present, nil, map[string]any{}, false},
		"NoField": {"an object never leaves a handler without a field",
			handlers.Handler{}, with("x"), with("y"), false},
		"NoChange": {
			"an object never leaves handlers of other families",
			handlers.Handler{Field: field, Family: handlers.Background}, with("x"), nil,
			false,
		},
	}
	for name, tc := range tests {
		if got := tc.h.LeavesField(&cause.Cause{Old: tc.old, New: tc.now}); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

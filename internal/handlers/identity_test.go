package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestHandlersUnderOneID(t *testing.T) {
	one := handlers.Handler{ID: "fn", Reason: cause.Create, FunctionKey: 1}
	tests := map[string]struct {
		reason                 string
		change                 func(h *handlers.Handler)
		twin, repeats, clashes bool
	}{
		"Twin": {
			reason: "the same registration by two selections is a twin",
			change: func(*handlers.Handler) {}, twin: true, repeats: true,
		},
		"OtherReason": {
			reason:  "one function registered for two reasons is called once",
			change:  func(h *handlers.Handler) { h.Reason = cause.Update },
			repeats: true,
		},
		"OtherFunction": {
			reason:  "two functions with one id would share their progress",
			change:  func(h *handlers.Handler) { h.FunctionKey = 2 },
			clashes: true,
		},
		"UnknownFunction": {
			reason:  "an unknown function differs from any other",
			change:  func(h *handlers.Handler) { h.FunctionKey = nil },
			clashes: true,
		},
		"OtherFamily": {
			reason:  "handlers of different families share no progress",
			change:  func(h *handlers.Handler) { h.Family = handlers.Watching },
			repeats: true,
		},
		"OtherID": {reason: "handlers with different ids share nothing",
			change: func(h *handlers.Handler) { h.ID = "other" }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			other := one
			tc.change(&other)
			want := []bool{tc.twin, tc.repeats, tc.clashes}
			got := []bool{one.IsTwin(&other), one.RepeatsFunction(&other), one.ClashesWith(&other)}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: twin, repeats, clashes: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestFamilies shows which defaults of a handler depend on its family.
func TestFamilies(t *testing.T) {
	type facts struct {
		Errors        handlers.ErrorsMode
		Writes, Field bool
	}
	for family, want := range map[handlers.Family]facts{
		handlers.Changing:   {handlers.ErrorsTemporary, true, true},
		handlers.Watching:   {handlers.ErrorsIgnored, false, true},
		handlers.Background: {handlers.ErrorsTemporary, true, true},
		handlers.Indexing:   {handlers.ErrorsIgnored, true, false},
		handlers.Admitting:  {handlers.ErrorsTemporary, true, false},
		handlers.Activity:   {handlers.ErrorsTemporary, true, false},
	} {
		h := handlers.Handler{Family: family, Field: diff.Path{"spec"}}
		got := facts{h.ErrorsByDefault(), h.WritesObjects(), h.EssenceField() != nil}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("family %d: -want, +got:\n%s", family, d)
		}
	}
}

package adapters_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestInterestIn(t *testing.T) {
	no, yes := []handlers.Filter{verdictAdapter(false)}, []handlers.Filter{verdictAdapter(true)}
	tests := map[string]struct {
		reason string
		all    []*handlers.Handler
		want   adapters.ObjectInterest
	}{
		"Nobody": {reason: "without handlers, there is no interest"},
		"FilteredOut": {
			reason: "an object that is filtered out is of no interest",
			all:    []*handlers.Handler{{Filters: no}, {Reason: cause.Delete, Filters: no}},
		},
		"FieldAbsent": {
			reason: "an object without the field is of no interest",
			all:    []*handlers.Handler{{Field: diff.Path{"spec", "z"}}},
		},
		"OtherReason": {
			reason: "the reason does not count, because it can change later",
			all:    []*handlers.Handler{{Reason: cause.Create}},
			want:   adapters.ObjectInterest{HasChangeHandler: true},
		},
		"FieldUnchanged": {
			reason: "a change of the field does not count, because it can come later",
			all:    []*handlers.Handler{{Field: diff.Path{"spec", "b"}, NeedsChange: true}},
			want:   adapters.ObjectInterest{HasChangeHandler: true},
		},
		"Delete": {
			reason: "a required deletion handler needs the finalizer", all: []*handlers.Handler{
				{Reason: cause.Delete, Filters: yes},
			},
			want: adapters.ObjectInterest{HasChangeHandler: true, NeedsFinalizer: true},
		},
		"Optional": {
			reason: "an optional deletion handler does not need the finalizer", all: []*handlers.Handler{
				{Reason: cause.Delete, Optional: true},
			},
			want: adapters.ObjectInterest{HasChangeHandler: true},
		},
		"DeleteLater": {
			reason: "all handlers are evaluated until one needs the finalizer", want: adapters.ObjectInterest{
				HasChangeHandler: true, NeedsFinalizer: true,
			},
			all: []*handlers.Handler{{Family: handlers.Watching}, {Reason: cause.Create}, {Reason: cause.Update},
				{Reason: cause.Delete, Filters: no}, {Reason: cause.Delete}},
		},
		"EnoughKnown": {
			reason: "no filter is evaluated after a handler that needs the finalizer", want: adapters.ObjectInterest{
				HasChangeHandler: true, NeedsFinalizer: true,
			},
			all: []*handlers.Handler{
				{Reason: cause.Delete}, {Filters: []handlers.Filter{failing}},
				{Reason: cause.Delete, Filters: []handlers.Filter{failing}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := adapters.InterestIn(t.Context(), newChains(tc.all...), updatedAdapter(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

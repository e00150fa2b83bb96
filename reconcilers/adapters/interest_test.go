package adapters_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestInterestIn(t *testing.T) {
	no, yes := []handlers.Filter{verdict(false)}, []handlers.Filter{verdict(true)}
	tests := map[string]struct {
		reason string
		all    []*handlers.Handler
		want   adapters.Interest
	}{
		"Nobody": {reason: "without handlers, the object is left alone"},
		"OtherFamilies": {
			reason: "others match on their own", all: []*handlers.Handler{
				{Family: handlers.Spawning}, {Family: handlers.Watching, Reason: cause.Delete},
			},
		},
		"FilteredOut": {
			reason: "an object that nobody wants is left alone",
			all:    []*handlers.Handler{{Filters: no}, {Reason: cause.Delete, Filters: no}},
		},
		"FieldAbsent": {
			reason: "so is one without the field", all: []*handlers.Handler{{Field: diff.Path{"spec", "z"}}},
		},
		"OtherReason": {
			reason: "the reason does not matter: it may come later", all: []*handlers.Handler{{Reason: cause.Create}},
			want: adapters.Interest{Changing: true},
		},
		"FieldUnchanged": {
			reason: "neither does the change",
			all:    []*handlers.Handler{{Field: diff.Path{"spec", "b"}, NeedsChange: true}},
			want:   adapters.Interest{Changing: true},
		},
		"Delete": {
			reason: "the object must not vanish before it was handled", all: []*handlers.Handler{
				{Reason: cause.Delete, Filters: yes},
			},
			want: adapters.Interest{Changing: true, Finalizer: true},
		},
		"Optional": {
			reason: "who is content with being too late demands no finalizer", all: []*handlers.Handler{
				{Reason: cause.Delete, Optional: true},
			},
			want: adapters.Interest{Changing: true},
		},
		"DeleteLater": {
			reason: "the finalizer is asked for even if the object is wanted already", want: adapters.Interest{
				Changing: true, Finalizer: true,
			},
			all: []*handlers.Handler{{Family: handlers.Watching}, {Reason: cause.Create}, {Reason: cause.Update},
				{Reason: cause.Delete, Filters: no}, {Reason: cause.Delete}},
		},
		"EnoughKnown": {
			reason: "once all is known, nobody else is asked: filters may be expensive", want: adapters.Interest{
				Changing: true, Finalizer: true,
			},
			all: []*handlers.Handler{
				{Reason: cause.Delete}, {Filters: []handlers.Filter{failing}},
				{Reason: cause.Delete, Filters: []handlers.Filter{failing}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := adapters.InterestIn(t.Context(), made(tc.all...), updated(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

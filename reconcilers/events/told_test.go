package events_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/journaltest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// What people are told of events: who was called, what came of that, and who was not, though not of events that
// everybody has heard; and what was written.
func TestJournalOfEvents(t *testing.T) {
	succeed := func(context.Context, *handlers.Invocation) error { return nil }
	no := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	broken := func(context.Context, *cause.Cause) (bool, error) { return false, errors.New("broken") }
	one := events.Event{Type: events.Added, Object: object("a", "u1", 1)}
	for name, tc := range map[string]struct {
		reason string
		own    []*handlers.Handler
		events []events.Event
		ended  bool
		want   []string
	}{
		"Heard": {
			"nobody has to be told why", []*handlers.Handler{watching("h", succeed)}, []events.Event{one}, false,
			[]string{"call h for event, attempt 1: succeeded"},
		},
		"Listed": {
			"an event of the initial list has no type", []*handlers.Handler{watching("h", succeed, no)},
			[]events.Event{{Type: events.Listed, Object: object("a", "u1", 1)}}, false,
			[]string{"look event; h not: Filters says filtered out"},
		},
		"Both": {
			"the look is noted after the calls, with all that were asked",
			[]*handlers.Handler{watching("h", succeed), watching("deaf", succeed, no), watching("last", succeed)},
			[]events.Event{one}, false, []string{
				"call h for event, attempt 1: succeeded", "call last for event, attempt 1: succeeded",
				"look event ADDED; h; deaf not: Filters says filtered out; last",
			},
		},
		"Fails": {
			"events are not repeated", []*handlers.Handler{watching("h", func(
				context.Context, *handlers.Invocation,
			) error {
				return errors.New("boo")
			})}, []events.Event{one}, false,
			[]string{"call h for event, attempt 1: failed; its errors are ignored: boo"},
		},
		"Broken": {
			"a filter that fails returned falsething",
			[]*handlers.Handler{watching("h", succeed, broken), watching("deaf", succeed, no)}, []events.Event{one},
			false, []string{"look event ADDED; deaf not: Filters says filtered out"},
		},
		"Ended": {
			"nobody is asked when all ends", []*handlers.Handler{watching("h", succeed, no)}, []events.Event{one}, true,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := journaltest.NewReader(t, schema.GroupKind{Group: "example.org", Kind: "Widget"})
			h := handling(tc.own...)
			h.Journal = told.Kind
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ended {
				cancel()
			}
			h.Deliver(ctx, tc.events)
			if d := cmp.Diff(tc.want, told.Lines("ns", "a")); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// Writes of event handlers are told, and that one has failed.
func TestJournalOfWrites(t *testing.T) {
	told := journaltest.NewReader(t, schema.GroupKind{Group: "example.org", Kind: "Widget"})
	h := handling()
	h.Journal, h.Writer = told.Kind, &refusing{}
	body, err := object("a", "u1", 1).Body()
	if err != nil {
		t.Fatal(err)
	}
	h.Write(t.Context(), body, patching.Patch{Merge: map[string]any{"data": "x"}})
	if d := cmp.Diff([]string{"write data by event handlers: not now"}, told.Lines("ns", "a")); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

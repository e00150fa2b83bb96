package events_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// TestJournalOfEvents shows the journal of events: the called handlers with their outcomes, and the skipped ones with
// the reasons, unless all handlers were called.
func TestJournalOfEvents(t *testing.T) {
	succeed := func(context.Context, *handlers.Invocation) error { return nil }
	no := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	broken := func(context.Context, *cause.Cause) (bool, error) { return false, errors.New("broken") }
	one := events.RawEvent{Type: events.Added, Object: newObject("a", "u1", 1)}
	for name, tc := range map[string]struct {
		reason   string
		handlers []*handlers.Handler
		events   []events.RawEvent
		ended    bool
		want     []string
	}{
		"Heard": {
			"no decision is noted if all handlers were called",
			[]*handlers.Handler{newEventHandler("h", succeed)}, []events.RawEvent{one}, false,
			[]string{"call h for event, attempt 1: succeeded"},
		},
		"Listed": {
			"the decision about an event of the initial list has no event type",
			[]*handlers.Handler{newEventHandler("h", succeed, no)},
			[]events.RawEvent{{Type: events.Listed, Object: newObject("a", "u1", 1)}}, false,
			[]string{"look event; h not: Filters says filtered out"},
		},
		"Both": {
			"the decision is noted after the calls, with all handlers",
			[]*handlers.Handler{newEventHandler("h", succeed), newEventHandler("deaf", succeed, no),
				newEventHandler("last", succeed)},
			[]events.RawEvent{one}, false, []string{
				"call h for event, attempt 1: succeeded", "call last for event, attempt 1: succeeded",
				"look event ADDED; h; deaf not: Filters says filtered out; last",
			},
		},
		"Fails": {
			"a failed event handler is not retried", []*handlers.Handler{newEventHandler("h", func(
				context.Context, *handlers.Invocation,
			) error {
				return errors.New("boo")
			})}, []events.RawEvent{one}, false,
			[]string{"call h for event, attempt 1: failed; its errors are ignored: boo"},
		},
		"Broken": {
			"a handler whose filter fails is not listed",
			[]*handlers.Handler{newEventHandler("h", succeed, broken), newEventHandler("deaf", succeed, no)},
			[]events.RawEvent{one},
			false, []string{"look event ADDED; deaf not: Filters says filtered out"},
		},
		"Ended": {
			"nothing is noted after the exit",
			[]*handlers.Handler{newEventHandler("h", succeed, no)}, []events.RawEvent{one}, true,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := journaltest.NewReader(t, schema.GroupKind{Group: "example.org", Kind: "Widget"})
			h := newEventHandling(tc.handlers...)
			h.Journal = told.Kind
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ended {
				cancel()
			}
			h.DeliverEvents(ctx, tc.events)
			if d := cmp.Diff(tc.want, told.EntryLines("ns", "a")); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestJournalOfWrites shows that the journal contains the writes of event handlers, and their failures.
func TestJournalOfWrites(t *testing.T) {
	told := journaltest.NewReader(t, schema.GroupKind{Group: "example.org", Kind: "Widget"})
	h := newEventHandling()
	h.Journal, h.Writer = told.Kind, &refusingWriter{}
	body, err := newObject("a", "u1", 1).Body()
	if err != nil {
		t.Fatal(err)
	}
	h.WriteChanges(t.Context(), body, patching.Patch{Merge: map[string]any{"data": "x"}})
	if d := cmp.Diff([]string{"write data by event handlers: not now"}, told.EntryLines("ns", "a")); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

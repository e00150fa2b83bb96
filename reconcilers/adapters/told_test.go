package adapters_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// hearing is told what is said to questions, a line each.
type hearing []string

func (h *hearing) tell(handler *handlers.Handler, stop execution.Stop) {
	line := handler.ID
	if stop.By != "" {
		line = fmt.Sprintf("%s: %s says %s", handler.ID, stop.By, stop.Why)
	}
	*h = append(*h, line)
}

// Whoever wants to know is told of each handler that was asked, in order, why its function would not be called.
func TestSelectTells(t *testing.T) {
	no, broken := []handlers.Filter{verdict(false)}, []handlers.Filter{failing}
	changing := []*handlers.Handler{
		{ID: "late", Reason: cause.Create}, {ID: "fits"}, {ID: "out", Filters: no},
		{ID: "other", Family: handlers.Watching}, {ID: "same", Function: 1}, {ID: "same", Function: 1},
		{ID: "still", Field: diff.Path{"spec", "b"}, NeedsChange: true},
	}
	spawning := []*handlers.Handler{
		{ID: "changes"}, {ID: "daemon", Family: handlers.Spawning},
		{ID: "unwanted", Family: handlers.Spawning, Filters: no},
	}
	heard := []string{
		"late: Created says other reason", "fits", "out: Filters says filtered out", "same",
		"still: FieldChanged says field unchanged",
	}
	for name, tc := range map[string]struct {
		reason string
		ask    func(h *hearing) ([]*adapters.Handler, error)
		want   []string
		fails  bool
	}{
		"Select": {
			"of handlers of changes, once where one is repeated", func(h *hearing) ([]*adapters.Handler, error) {
				return adapters.Select(t.Context(), made(changing...), updated(), h.tell)
			}, heard, false,
		},
		"SelectFails": {
			"of those before a filter that fails, which says nothing", func(h *hearing) ([]*adapters.Handler, error) {
				all := append(slices.Clone(changing), &handlers.Handler{ID: "broken", Filters: broken},
					&handlers.Handler{ID: "after"})
				return adapters.Select(t.Context(), made(all...), updated(), h.tell)
			}, heard, true,
		},
		"Matching": {
			"of the other families", func(h *hearing) ([]*adapters.Handler, error) {
				return adapters.Matching(t.Context(), made(spawning...), updated(), h.tell)
			}, []string{"daemon", "unwanted: Filters says filtered out"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got hearing
			if _, err := tc.ask(&got); (err != nil) != tc.fails {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// One handler tells what it says, unless its filter fails. Nobody has to listen.
func TestOneHandlerTells(t *testing.T) {
	later := execution.Account{Until: noon.Add(time.Second)}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		account *execution.Account // it is asked whether it is due
		want    []string
		fails   bool
	}{
		"Matches": {reason: "yes", want: []string{"h"}},
		"MatchesNot": {
			reason: "no", handler: handlers.Handler{Filters: []handlers.Filter{verdict(false)}},
			want: []string{"h: Filters says filtered out"},
		},
		"MatchesFails": {
			reason: "neither", handler: handlers.Handler{Filters: []handlers.Filter{failing}}, fails: true,
		},
		"IsDue":    {reason: "yes", account: &execution.Account{}, want: []string{"h"}},
		"IsNotDue": {reason: "it sleeps", account: &later, want: []string{"h: Progress says asleep"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.handler.ID = "h"
			h := adapters.New(&tc.handler, nil)
			ask := func(tell func(*handlers.Handler, execution.Stop)) (bool, error) {
				if tc.account == nil {
					return h.Matches(t.Context(), updated(), tell)
				}
				return h.IsDue(t.Context(), *tc.account, func() time.Time { return noon }, tell)
			}
			var got hearing
			ok, err := ask(got.tell)
			if (err != nil) != tc.fails {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if unheard, err := ask(nil); unheard != ok || (err != nil) != tc.fails {
				t.Errorf("%s: with nobody to tell, got %v, error %v", tc.reason, unheard, err)
			}
		})
	}
}

// Interest is told of those that do not want the object, until one does.
func TestInterestInTells(t *testing.T) {
	no, broken := []handlers.Filter{verdict(false)}, []handlers.Filter{failing}
	absent := diff.Path{"spec", "z"}
	for name, tc := range map[string]struct {
		reason string
		all    []*handlers.Handler
		want   []string
		fails  bool
	}{
		"Nobody": {
			reason: "each says why it does not want the object",
			all: []*handlers.Handler{
				{ID: "delete", Reason: cause.Delete, Filters: no}, {ID: "create", Reason: cause.Create, Filters: no},
				{ID: "field", Field: absent, NeedsChange: true}, {ID: "event", Family: handlers.Watching, Filters: no},
			},
			want: []string{
				"delete: Filters says filtered out", "create: Filters says filtered out",
				"field: Filters says other value of the field",
			},
		},
		"Wanted": {
			reason: "nobody is told of those that come after one that wants the object, nor of that one",
			all: []*handlers.Handler{
				{ID: "a", Filters: no}, {ID: "wants"}, {ID: "b", Filters: no},
				{ID: "delete", Reason: cause.Delete, Filters: no},
			},
			want: []string{"a: Filters says filtered out"},
		},
		"Held": {
			reason: "nor of one that holds it", want: []string{"a: Filters says filtered out"},
			all: []*handlers.Handler{
				{ID: "a", Filters: no}, {ID: "holds", Reason: cause.Delete}, {ID: "b", Filters: no},
			},
		},
		"Fails": {
			reason: "an error says nothing", want: []string{"a: Filters says filtered out"}, fails: true,
			all: []*handlers.Handler{{ID: "a", Filters: no}, {ID: "broken", Filters: broken}},
		},
		"DeletionFails": {
			reason: "nor does that of a handler of deletions", want: []string{"a: Filters says filtered out"},
			fails: true,
			all: []*handlers.Handler{
				{ID: "a", Filters: no}, {ID: "broken", Reason: cause.Delete, Filters: broken},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got hearing
			_, err := adapters.InterestIn(t.Context(), made(tc.all...), updated(), got.tell)
			if (err != nil) != tc.fails {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// An attempt knows how long it took, by its own clock, also if its function has ended the goroutine.
func TestTook(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func()
	}{
		"Returned": {"the function took a minute", func() {}},
		"Goexit":   {"it did so, too", runtime.Goexit},
		"Panic":    {"and so did this one", func() { panic("boo") }},
	} {
		t.Run(name, func(t *testing.T) {
			clock := noon
			a := attemptOf(func(context.Context, *handlers.Invocation) error {
				clock = clock.Add(time.Minute)
				tc.end()
				return nil
			})
			a.Now, a.Selected = func() time.Time { return clock }, true
			if adapters.New(a.Call.Handler, nil).Run(t.Context(), a); a.Took != time.Minute {
				t.Errorf("%s: got %s", tc.reason, a.Took)
			}
		})
	}
}

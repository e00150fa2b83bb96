package adapters_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// answerLog collects the answers of handlers to questions, one line each.
type answerLog []string

func (h *answerLog) addAnswer(handler *handlers.Handler, stop execution.Stop) {
	line := handler.ID
	if stop.Adapter != "" {
		line = fmt.Sprintf("%s: %s says %s", handler.ID, stop.Adapter, stop.Reason)
	}
	*h = append(*h, line)
}

// TestSelectReportsHandlers shows that Select reports each handler in order, with the reason if its
// function would not be called.
func TestSelectReportsHandlers(t *testing.T) {
	no, broken := []handlers.Filter{verdictAdapter(false)}, []handlers.Filter{failing}
	changing := []*handlers.Handler{
		{ID: "late", Reason: cause.Create}, {ID: "fits"}, {ID: "out", Filters: no},
		{ID: "same", FunctionKey: 1}, {ID: "same", FunctionKey: 1},
		{ID: "still", Field: diff.Path{"spec", "b"}, NeedsChange: true},
	}
	spawning := []*handlers.Handler{
		{ID: "daemon", Family: handlers.Background}, {ID: "unwanted", Family: handlers.Background, Filters: no},
	}
	heard := []string{
		"late: Created says other reason", "fits", "out: Filters says filtered out", "same",
		"still: FieldChanged says field unchanged",
	}
	for name, tc := range map[string]struct {
		reason string
		ask    func(h *answerLog) ([]*adapters.HandlerChain, error)
		want   []string
		fails  bool
	}{
		"Select": {
			"Select reports handlers of changes, each function and id once",
			func(h *answerLog) ([]*adapters.HandlerChain, error) {
				return adapters.Select(t.Context(), newChains(changing...), updatedAdapter(), h.addAnswer)
			}, heard, false,
		},
		"SelectFails": {
			"Select reports the handlers before a filter that fails",
			func(h *answerLog) ([]*adapters.HandlerChain, error) {
				all := append(slices.Clone(changing), &handlers.Handler{ID: "broken", Filters: broken},
					&handlers.Handler{ID: "after"})
				return adapters.Select(t.Context(), newChains(all...), updatedAdapter(), h.addAnswer)
			}, heard, true,
		},
		"Matching": {
			"Select reports handlers of other families", func(h *answerLog) ([]*adapters.HandlerChain, error) {
				return adapters.Select(t.Context(), newChains(spawning...), updatedAdapter(), h.addAnswer)
			}, []string{"daemon", "unwanted: Filters says filtered out"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got answerLog
			if _, err := tc.ask(&got); (err != nil) != tc.fails {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestOneHandlerReports shows that one handler reports its answer, unless its filter fails. The callback is optional.
func TestOneHandlerReports(t *testing.T) {
	later := execution.Account{Until: noon.Add(time.Second)}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		account *execution.Account // if set, IsDue is tested instead of Matches
		want    []string
		fails   bool
	}{
		"Matches": {reason: "a matching handler is reported", want: []string{"h"}},
		"MatchesNot": {
			reason:  "a handler that does not match is reported with its filter",
			handler: handlers.Handler{Filters: []handlers.Filter{verdictAdapter(false)}},
			want:    []string{"h: Filters says filtered out"},
		},
		"MatchesFails": {
			reason:  "a handler whose filter fails is not reported",
			handler: handlers.Handler{Filters: []handlers.Filter{failing}}, fails: true,
		},
		"IsDue": {reason: "a handler that is due is reported", account: &execution.Account{}, want: []string{"h"}},
		"IsNotDue": {reason: "a handler that waits for its retry is reported as asleep", account: &later,
			want: []string{"h: Progress says asleep"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.handler.ID = "h"
			h := adapters.New(&tc.handler, nil)
			ask := func(tell func(*handlers.Handler, execution.Stop)) (bool, error) {
				if tc.account == nil {
					return h.MatchesCause(t.Context(), updatedAdapter(), tell)
				}
				return h.IsDue(t.Context(), *tc.account, func() time.Time { return noon }, tell)
			}
			var got answerLog
			ok, err := ask(got.addAnswer)
			if (err != nil) != tc.fails {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if unheard, err := ask(nil); unheard != ok || (err != nil) != tc.fails {
				t.Errorf("%s: without a callback, got %v, error %v", tc.reason, unheard, err)
			}
		})
	}
}

// TestInterestInReports shows that InterestIn reports the handlers that do not match the object, until one does.
func TestInterestInReports(t *testing.T) {
	no, broken := []handlers.Filter{verdictAdapter(false)}, []handlers.Filter{failing}
	absent := diff.Path{"spec", "z"}
	for name, tc := range map[string]struct {
		reason string
		all    []*handlers.Handler
		want   []string
		fails  bool
	}{
		"Nobody": {
			reason: "each handler of changes that does not match is reported",
			all: []*handlers.Handler{
				{ID: "delete", Reason: cause.Delete, Filters: no}, {ID: "create", Reason: cause.Create, Filters: no},
				{ID: "field", Field: absent, NeedsChange: true},
			},
			want: []string{
				"delete: Filters says filtered out", "create: Filters says filtered out",
				"field: Filters says other value of the field",
			},
		},
		"Wanted": {
			reason: "a matching handler and those after it are not reported",
			all: []*handlers.Handler{
				{ID: "a", Filters: no}, {ID: "wants"}, {ID: "b", Filters: no},
				{ID: "delete", Reason: cause.Delete, Filters: no},
			},
			want: []string{"a: Filters says filtered out"},
		},
		"Held": {
			reason: "a matching deletion handler and those after it are not reported",
			want:   []string{"a: Filters says filtered out"},
			all: []*handlers.Handler{
				{ID: "a", Filters: no}, {ID: "holds", Reason: cause.Delete}, {ID: "b", Filters: no},
			},
		},
		"Fails": {
			reason: "a handler whose filter fails is not reported", want: []string{"a: Filters says filtered out"},
			fails: true,
			all:   []*handlers.Handler{{ID: "a", Filters: no}, {ID: "broken", Filters: broken}},
		},
		"DeletionFails": {
			reason: "a deletion handler whose filter fails is not reported",
			want:   []string{"a: Filters says filtered out"},
			fails:  true,
			all: []*handlers.Handler{
				{ID: "a", Filters: no}, {ID: "broken", Reason: cause.Delete, Filters: broken},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got answerLog
			_, err := adapters.InterestIn(t.Context(), newChains(tc.all...), updatedAdapter(), got.addAnswer)
			if (err != nil) != tc.fails {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestTook shows that an attempt measures its time with its own clock, also if its function does not return.
func TestTook(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func()
	}{
		"Returned": {"the time of a function that returns is measured", func() {}},
		"Goexit":   {"the time of a function that ends its goroutine is measured", runtime.Goexit},
		"Panic":    {"the time of a function that panics is measured", func() { panic("boo") }},
	} {
		t.Run(name, func(t *testing.T) {
			clock := noon
			a := attemptOf(func(context.Context, *handlers.Invocation) error {
				clock = clock.Add(time.Minute)
				tc.end()
				return nil
			})
			a.Now, a.Selected = func() time.Time { return clock }, true
			if adapters.New(a.Call.Handler, nil).RunAttempt(t.Context(), a); a.Duration != time.Minute {
				t.Errorf("%s: got %s", tc.reason, a.Duration)
			}
		})
	}
}

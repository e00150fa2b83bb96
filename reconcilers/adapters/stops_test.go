package adapters_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var noon = time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC)

// TestStopped shows that each adapter that stops an attempt reports the reason as a value.
func TestStopped(t *testing.T) {
	a, b := diff.Path{"spec", "a"}, diff.Path{"spec", "b"}
	not := func(any, bool) bool { return false }
	tests := map[string]struct {
		handler  handlers.Handler
		question execution.Question
		change   func(a *execution.Attempt)
		want     execution.Stop
	}{
		"Created": {
			handler: handlers.Handler{Reason: cause.Create}, question: execution.Selection,
			want: execution.Stop{
				Adapter: "Created", Reason: execution.OtherReason, Expected: cause.Create, Found: cause.Update,
			},
		},
		"Deleted": {
			handler: handlers.Handler{Reason: cause.Delete}, question: execution.Selection,
			want: execution.Stop{
				Adapter: "Deleted", Reason: execution.OtherReason, Expected: cause.Delete, Found: cause.Update,
			},
		},
		"Updated": {
			handler: handlers.Handler{Reason: cause.Update}, question: execution.Selection,
			change: func(a *execution.Attempt) { withReason(a.Call.Cause, cause.Gone) },
			want: execution.Stop{
				Adapter: "Updated", Reason: execution.OtherReason, Expected: cause.Update, Found: cause.Gone,
			},
		},
		"Noop": {
			handler: handlers.Handler{Reason: cause.Noop}, question: execution.Selection,
			want: execution.Stop{
				Adapter: "AnyReason", Reason: execution.OtherReason, Expected: cause.Noop, Found: cause.Update,
			},
		},
		"NotInitial": {
			handler: handlers.Handler{Initial: true}, question: execution.Selection,
			want: execution.Stop{Adapter: "Resumed", Reason: execution.NotInitial},
		},
		"BeingDeleted": {
			handler: handlers.Handler{Initial: true}, question: execution.Selection,
			change: func(a *execution.Attempt) { withReason(a.Call.Cause, cause.Delete).Initial = true },
			want:   execution.Stop{Adapter: "Resumed", Reason: execution.BeingDeleted},
		},
		"NotHeldForUpdates": {
			handler: handlers.Handler{Reason: cause.Update}, question: execution.Deletion,
			want: execution.Stop{Adapter: "Updated", Reason: execution.FinalizerNotNeeded},
		},
		"NotHeldForOptional": {
			handler: handlers.Handler{Reason: cause.Delete, Optional: true}, question: execution.Deletion,
			want: execution.Stop{Adapter: "Deleted", Reason: execution.FinalizerNotNeeded},
		},
		"Held": {handler: handlers.Handler{Reason: cause.Delete}, question: execution.Deletion},
		"HeldEvenIfResumed": {
			handler: handlers.Handler{Reason: cause.Delete, Initial: true}, question: execution.Deletion,
		},
		"InterestOfOthers": {handler: handlers.Handler{Reason: cause.Create}, question: execution.Interest},
		"Unchanged": {
			handler: handlers.Handler{Field: b, NeedsChange: true}, question: execution.Selection,
			want: execution.Stop{Adapter: "FieldChanged", Reason: execution.Unchanged, Found: int64(2)},
		},
		"UnchangedInterest": {handler: handlers.Handler{Field: b, NeedsChange: true}, question: execution.Interest},
		"From": {
			handler: handlers.Handler{Field: a, From: not}, question: execution.Selection,
			want: execution.Stop{Adapter: "FieldChanged", Reason: execution.OtherChange, Found: int64(0)},
		},
		"To": {
			handler: handlers.Handler{Field: a, To: not}, question: execution.Selection,
			want: execution.Stop{Adapter: "FieldChanged", Reason: execution.OtherChange, Found: int64(1)},
		},
		"Value": {
			handler: handlers.Handler{Field: a, Value: not}, question: execution.Interest,
			want: execution.Stop{Adapter: "Filters", Reason: execution.OtherValue, Found: int64(1)},
		},
		"Filter": {
			handler: handlers.Handler{
				Family: handlers.Watching, Filters: []handlers.Filter{verdictAdapter(true), verdictAdapter(false),
					failing},
			},
			question: execution.Selection,
			want:     execution.Stop{Adapter: "Filters", Reason: execution.FilteredOut, Filter: 1},
		},
		"Asleep": {
			question: execution.Due,
			change:   func(a *execution.Attempt) { a.Account.Until = noon.Add(time.Second) },
			want:     execution.Stop{Adapter: "Progress", Reason: execution.Asleep, Until: noon.Add(time.Second)},
		},
		"Awake": {question: execution.Due, change: func(a *execution.Attempt) { a.Account.Until = noon }},
		"AsleepIsSelected": {
			question: execution.Selection,
			change:   func(a *execution.Attempt) { a.Account.Until = noon.Add(time.Second) },
		},
		"Finished": {
			question: execution.Due, change: func(a *execution.Attempt) { a.Account.Finished = true },
			want: execution.Stop{Adapter: "Progress", Reason: execution.Finished},
		},
		"Blocked": {
			question: execution.Due, change: func(a *execution.Attempt) { a.Account.Blocked = true },
			want: execution.Stop{Adapter: "Progress", Reason: execution.Blocked},
		},
		"FinishedCall": {
			change: func(a *execution.Attempt) { a.Account.Finished = true },
			want:   execution.Stop{Adapter: "Progress", Reason: execution.Finished},
		},
		"Retries": {
			handler: handlers.Handler{Policy: handlers.Policy{Retries: ptr.To(3)}},
			change:  func(a *execution.Attempt) { a.Account.Retries = 4 },
			want:    execution.Stop{Adapter: "Limits", Reason: execution.Exceeded, Expected: 3, Found: 4},
		},
		"Timeout": {
			handler: handlers.Handler{Policy: handlers.Policy{Timeout: ptr.To(time.Minute), Retries: ptr.To(0)}},
			change:  func(a *execution.Attempt) { a.Account.Started = noon.Add(-time.Hour) },
			want: execution.Stop{
				Adapter: "Limits", Reason: execution.Exceeded, Expected: time.Minute, Found: time.Hour,
			},
		},
		"Called": {handler: handlers.Handler{Call: returning(nil)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			attempt := execution.NewAttempt(&tc.handler, updatedAdapter(), nil)
			attempt.Selected, attempt.Now = false, func() time.Time { return noon }
			if tc.change != nil {
				tc.change(attempt)
			}
			h := adapters.New(&tc.handler, nil)
			ok := tc.want.Adapter == ""
			var err error
			if tc.question == 0 {
				_, err = h.Reconcile(t.Context(), attempt)
			} else {
				ok, err = h.Ask(t.Context(), attempt, tc.question)
			}
			if err != nil || ok != (tc.want.Adapter == "") {
				t.Errorf("got %v, error %v", ok, err)
			}
			if d := cmp.Diff(tc.want, attempt.Stop); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
			if by := attempt.Stop.Adapter; by != "" && !slices.Contains(h.AdapterNames(), by) {
				t.Errorf("the chain lists no %s: %v", by, h.AdapterNames())
			}
		})
	}
}

// TestFiltersAreAskedOnce shows that each filter is called once for each question, up to the first mismatch, and not
// again for the call: filters can be expensive.
func TestFiltersAreAskedOnce(t *testing.T) {
	asked, calls := map[string]int{}, 0
	counting := func(id string, ok bool) []handlers.Filter {
		return []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) { asked[id]++; return ok, nil }}
	}
	call := func(context.Context, *handlers.Invocation) error { calls++; return nil }
	all := newChains(
		&handlers.Handler{ID: "other reason", Reason: cause.Create, Filters: counting("other reason", true),
			Call: call},
		&handlers.Handler{ID: "out", Reason: cause.Update, Filters: counting("out", false), Call: call},
		&handlers.Handler{ID: "in", Reason: cause.Update, Filters: counting("in", true), FunctionKey: 1, Call: call},
		&handlers.Handler{ID: "in", Filters: counting("repeated", true), FunctionKey: 1, Call: call},
		&handlers.Handler{ID: "not held", Reason: cause.Delete, Filters: counting("not held", false), Call: call},
		&handlers.Handler{ID: "held", Reason: cause.Delete, Filters: counting("held", true), Call: call},
		&handlers.Handler{ID: "last", Reason: cause.Delete, Filters: counting("last", true), Call: call},
	)
	c := updatedAdapter()
	selected, err := adapters.Select(t.Context(), all, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range selected {
		if h.RunAttempt(t.Context(), execution.NewAttempt(h.Description, c, c.Body())); calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
	}
	want := map[string]int{"out": 1, "in": 1}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("selection and call: -want, +got:\n%s", d)
	}
	clear(asked)
	if _, err := adapters.InterestIn(t.Context(), all[1:], c, nil); err != nil {
		t.Fatal(err)
	}
	want = map[string]int{"out": 1, "in": 1, "not held": 1, "held": 1}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("interest: -want, +got:\n%s", d)
	}
}

package adapters_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestGoexit shows that a function that calls t.FailNow or runtime.Goexit, which ends its goroutine with all adapters,
// fails.
func TestGoexit(t *testing.T) {
	tests := map[string]struct {
		reason  string
		retries *int
		want    outcome
	}{
		"Again": {
			reason: "the handler is retried with the backoff, not at once",
			want:   outcome{Delay: time.Minute, Err: "the function ended its goroutine by runtime.Goexit"},
		},
		"Last": {
			reason: "the attempt counts as any other failure", retries: ptr.To(1),
			want: outcome{Final: true, Delay: -1, Err: "gave up after 1 attempt: " +
				"the function ended its goroutine by runtime.Goexit"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := attemptOf(func(context.Context, *handlers.Invocation) error { runtime.Goexit(); return nil })
			a.Limits.Policy = handlers.Policy{Retries: tc.retries, Timeout: ptr.To(time.Hour)}
			setUp(a, nil).RunAttempt(t.Context(), a)
			if d := cmp.Diff(tc.want, outcomeOf(a.Outcome)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestRunTellsOfFilters shows that a filter that fails during the call of an attempt that was not selected aborts the
// attempt.
func TestRunTellsOfFilters(t *testing.T) {
	h := adapters.New(&handlers.Handler{ID: "fn", Filters: []handlers.Filter{failing}, Call: returning(nil)}, nil)
	a := execution.NewAttempt(h.Description, updatedAdapter(), nil)
	a.Selected = false
	h.RunAttempt(t.Context(), a)
	want := outcome{Aborted: true, Delay: -1, Err: `filter of handler "fn": the database of owners is down`}
	if d := cmp.Diff(want, outcomeOf(a.Outcome)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

func TestRunOutlivesItsGoroutine(t *testing.T) {
	for family, want := range map[handlers.Family]outcome{
		handlers.Changing:   {Delay: time.Minute, Err: "the function ended its goroutine by runtime.Goexit"},
		handlers.Watching:   {Final: true, Delay: -1},
		handlers.Background: {Delay: time.Minute, Err: "the function ended its goroutine by runtime.Goexit"},
		handlers.Indexing:   {Final: true, Delay: -1},
	} {
		h := adapters.New(&handlers.Handler{
			ID: "fn", Family: family,
			Call: func(context.Context, *handlers.Invocation) error { runtime.Goexit(); return nil },
			Index: &handlers.IndexWork{Call: func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
				runtime.Goexit()
				return nil, false, nil
			}},
		}, nil)
		a := execution.NewAttempt(h.Description, updatedAdapter(), nil)
		h.RunAttempt(t.Context(), a)
		if d := cmp.Diff(want, outcomeOf(a.Outcome)); d != "" {
			t.Errorf("family %d: -want, +got:\n%s", family, d)
		}
		if err := a.SetResult(1); err == nil {
			t.Error("SetResult must be an error after the end of the attempt")
		}
	}
}

// TestProgressContinues shows that the function gets the number of former attempts and the start of the first one.
func TestProgressContinues(t *testing.T) {
	var retry int
	var started time.Time
	h := adapters.New(&handlers.Handler{ID: "fn", Call: func(_ context.Context, call *handlers.Invocation) error {
		retry, started = call.Retry, call.Started
		return nil
	}}, nil)
	for _, account := range []execution.Account{{}, {Retries: 3, Started: noon.Add(-time.Hour)}} {
		a := execution.NewAttempt(h.Description, updatedAdapter(), nil)
		a.Account, a.Now = account, func() time.Time { return noon }
		h.RunAttempt(t.Context(), a)
		if account.Started.IsZero() {
			account.Started = noon
		}
		if retry != account.Retries || !started.Equal(account.Started) ||
			a.Limits.Retries != account.Retries || a.Limits.Runtime != noon.Sub(account.Started) {
			t.Errorf("%+v: got attempt %d since %v, limits %+v", account, retry, started, a.Limits)
		}
	}
}

// slotCounter counts the attempts in it.
type slotCounter struct{ heldCount, maxHeld int }

func (p *slotCounter) Enter(*execution.Attempt) {
	p.heldCount++
	p.maxHeld = max(p.maxHeld, p.heldCount)
}
func (p *slotCounter) Leave(*execution.Attempt) { p.heldCount-- }

func TestOccupation(t *testing.T) {
	var p slotCounter
	h := adapters.New(&handlers.Handler{ID: "fn", Call: returning(nil)}, nil)
	for _, one := range []*adapters.HandlerChain{h,
		h.NewSubHandler(&handlers.Handler{ID: "sub", Call: returning(nil)})} {
		p.maxHeld = 0
		a := execution.NewAttempt(one.Description, updatedAdapter(), nil)
		a.Slot = &p
		one.RunAttempt(t.Context(), a)
		if want := one.Description.Root == ""; p.heldCount != 0 || (p.maxHeld == 1) != want {
			t.Errorf("%s: %d attempts hold the slot, %d at most", one.Description.ID, p.heldCount, p.maxHeld)
		}
	}
}

// TestProgressOfForgedStarts shows that a record with a forged start, in the year 1, makes the handler time out.
func TestProgressOfForgedStarts(t *testing.T) {
	h := adapters.New(&handlers.Handler{
		ID: "fn", Call: returning(nil), Policy: handlers.Policy{Timeout: ptr.To(time.Hour)},
	}, nil)
	read := func(string) (*progress.Record, error) { return &progress.Record{Started: &time.Time{}}, nil }
	state, err := execution.RestoreState(read, []string{"fn"}, []string{"fn"}, "create", noon)
	if err != nil {
		t.Fatal(err)
	}
	a := execution.NewAttempt(h.Description, updatedAdapter(), nil)
	a.Account, a.Now = state.StateOf("fn").Account(), func() time.Time { return noon }
	if h.RunAttempt(t.Context(), a); a.Stop.Reason != execution.Exceeded || a.Outcome.Err == nil {
		t.Errorf("got %+v by %+v", a.Outcome, a.Stop)
	}
}

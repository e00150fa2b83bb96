package execution_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

func TestAccountWaits(t *testing.T) {
	tests := map[string]struct {
		reason  string
		account execution.Account
		want    execution.Stop
	}{
		"Finished": {
			reason:  "a finished handler is not called again, whatever else is recorded",
			account: execution.Account{Finished: true, Blocked: true, Until: at(1)},
			want:    execution.Stop{Reason: execution.Finished},
		},
		"Blocked": {
			reason:  "a blocked handler does not become due with time",
			account: execution.Account{Blocked: true, Until: at(1)}, want: execution.Stop{Reason: execution.Blocked},
		},
		"Awaiting": {
			reason: "a handler waits for its dependencies before its own delay",
			account: execution.Account{UnfinishedDependencies: []string{"a"}, FailedDependencies: []string{"b"},
				Until: at(1)},
			want: execution.Stop{Reason: execution.DependencyUnfinished, Expected: []string{"a"}},
		},
		"Lost": {
			reason:  "a handler with failed dependencies does not wait, because it has to fail",
			account: execution.Account{FailedDependencies: []string{"b"}},
		},
		"Asleep": {
			reason: "a delayed handler reports the time of its next attempt", account: execution.Account{Until: at(1)},
			want: execution.Stop{Reason: execution.Asleep, Until: at(1)},
		},
		"Awake":   {reason: "a handler is due at the end of its delay", account: execution.Account{Until: at(0)}},
		"Unknown": {reason: "a handler with an empty account does not wait"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, tc.account.WaitReason(at(0))); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestAccountOfAHandler shows that the account of a handler consists of its record and of whether the object blocks
// it.
func TestAccountOfAHandler(t *testing.T) {
	retries, started, delayed := int64(3), at(-60), at(60)
	read := func(string) (*progress.Record, error) {
		return &progress.Record{Retries: &retries, Started: &started, Delayed: &delayed}, nil
	}
	state, err := execution.RestoreState(read, []string{"a"}, []string{"a"}, "create", at(0))
	if err != nil {
		t.Fatal(err)
	}
	want := execution.Account{Retries: 3, Started: at(-60), Until: at(60)}
	if d := cmp.Diff(want, state.StateOf("a").Account()); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if got := want.RuntimeAt(at(0)); got != time.Minute {
		t.Errorf("want a runtime of one minute, got %s", got)
	}
	if got := want.RuntimeAt(at(-90)) + (execution.Account{}).RuntimeAt(at(0)); got != 0 {
		t.Errorf("want no runtime for a start in the future or no start, got %s", got)
	}
	if err := state.ConcludeAttempt("a", execution.Outcome{Aborted: true, Blocked: true}, at(0)); err != nil {
		t.Fatal(err)
	}
	want.Blocked = true
	if d := cmp.Diff(want, state.StateOf("a").Account()); d != "" {
		t.Errorf("blocked: -want, +got:\n%s", d)
	}
}

func TestNewAttempts(t *testing.T) {
	body := map[string]any{"spec": map[string]any{"a": "x"}}
	h := &handlers.Handler{ID: "fn", Family: handlers.Watching}
	a := execution.NewAttempt(h, &cause.Cause{Object: jsontext.NewFromValue(body)}, body)
	if err := a.Call.Writer.AddTransform(func(object map[string]any) error {
		object["spec"].(map[string]any)["a"] = "y"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]any{"spec": map[string]any{"a": "x"}}, body); d != "" {
		t.Errorf("the change has reached the shared object: -want, +got:\n%s", d)
	}
	if !a.Selected || a.Limits.Mode != handlers.ErrorsIgnored || a.Call.Handler != h {
		t.Errorf("got %+v", a.Limits)
	}
	if a := execution.NewAttempt(&handlers.Handler{}, &cause.Cause{}, nil); a.Call.Object != nil ||
		a.Limits.Mode != handlers.ErrorsTemporary {
		t.Errorf("got %+v of %v", a.Limits, a.Call.Object)
	}
}

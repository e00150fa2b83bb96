package execution_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestCountsEnd shows that forged numbers of attempts are limited.
func TestCountsEnd(t *testing.T) {
	for _, count := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt32, math.MaxInt32 + 1} {
		state := restore(t, records{"a": {Retries: &count}}, []string{"a"}, []string{"a"}, "create")
		conclude(t, state, "a", execution.Outcome{Err: errOrdinary, Delay: ptr.To(time.Second)}, epoch)
		if got := state.StateOf("a").AsRecord(); got.Retries == nil || *got.Retries != math.MaxInt32 {
			t.Errorf("after %d attempts and one more, the record has %v, want %d", count, got.Retries, math.MaxInt32)
		}
		limits := execution.Limits{
			ID: "a", Retries: state.StateOf("a").Retries, Policy: handlers.Policy{Retries: ptr.To(5)},
		}
		if limits.ExceededError() == nil || !limits.OutcomeOf(errOrdinary).Final {
			t.Errorf("after %d attempts, the limit of 5 is not exceeded", count)
		}
	}
}

// TestRuntimeOfForgedStarts shows the runtime for the earliest and the latest start that a record can have.
func TestRuntimeOfForgedStarts(t *testing.T) {
	cases := map[string]struct {
		started string
		late    bool
	}{
		"FirstYear": {"0001-01-01T00:00:00Z", true},
		"LastYear":  {"9999-12-31T23:59:59Z", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			started, err := progress.ParseTimestamp(tc.started)
			if err != nil {
				t.Fatal(err)
			}
			state := restore(t, records{"a": {Started: &started}}, []string{"a"}, []string{"a"}, "create")
			limits := execution.Limits{
				ID: "a", Runtime: state.StateOf("a").Account().RuntimeAt(epoch),
				Policy: handlers.Policy{Timeout: ptr.To(time.Hour)},
			}
			if late := limits.ExceededError() != nil; late != tc.late {
				t.Errorf("the timeout is exceeded: %t, want %t", late, tc.late)
			}
			if final := limits.OutcomeOf(errOrdinary).Final; final != tc.late {
				t.Errorf("the next attempt is too late: %t, want %t", final, tc.late)
			}
		})
	}
}

// TestForeignSubrefs shows that listed ids that do not belong to sub-handlers of the handler are ignored.
func TestForeignSubrefs(t *testing.T) {
	listed := []string{"last-handled-configuration", "a/x", "b", "a/x", "a", "", "a/w", "b/y"}
	state := restore(t, records{"a": {Subrefs: listed}, "b": {}}, []string{"a", "b"}, []string{"b"}, "create")
	if diff := cmp.Diff([]string{"a/w", "a/x"}, state.StateOf("a").Subrefs); diff != "" {
		t.Errorf("accepted ids: -want, +got:\n%s", diff)
	}
	body := object{"metadata": object{"annotations": object{"o.example.org/b": "{}", "o.example.org/a.x": "{}",
		"o.example.org/a": "{}", "o.example.org/last-handled-configuration": "{}"}}}
	for name, purge := range map[string]func(progress.Writer, object, object) error{
		"all": state.PurgeAll, "passive": state.PurgePassive,
	} {
		patch := object{}
		if err := purge(progress.Annotations{Prefix: "o.example.org"}, patch, body); err != nil {
			t.Fatal(err)
		}
		want := object{"o.example.org/a": nil, "o.example.org/a.x": nil}
		if name == "all" {
			want["o.example.org/b"] = nil
		}
		if diff := cmp.Diff(object{"metadata": object{"annotations": want}}, patch); diff != "" {
			t.Errorf("purge of %s: -want, +got:\n%s", name, diff)
		}
	}
}

// TestActiveIsNoSubHandler shows that the record of an active handler is kept, even if its id looks like that of a
// sub-handler of a passive one.
func TestActiveIsNoSubHandler(t *testing.T) {
	state := restore(
		t, records{"a": {Subrefs: []string{"a/spec.x"}}, "a/spec.x": {Success: ptr.To(true)}},
		[]string{"a", "a/spec.x"}, []string{"a/spec.x"}, "",
	)
	patch := object{}
	body := object{"metadata": object{"annotations": object{"o.example.org/a": "{}", "o.example.org/a.spec.x": "{}"}}}
	if err := state.PurgePassive(progress.Annotations{Prefix: "o.example.org"}, patch, body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{"metadata": object{"annotations": object{"o.example.org/a": nil}}}, patch); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestForgedMessage shows that a long message is shortened when it is stored, because escaping makes it even longer.
func TestForgedMessage(t *testing.T) {
	long := strings.Repeat("€", 50_000)
	state := restore(
		t, records{"a": {Message: &long, Purpose: ptr.To("update")}}, []string{"a"}, []string{"a"}, "create",
	)
	store := progress.Annotations{Prefix: "o.example.org"}
	patch := object{}
	if err := state.StoreChanged(store, patch, object{}); err != nil {
		t.Fatal(err)
	}
	record, err := store.Fetch(patch, "a")
	if err != nil || record == nil || record.Message == nil || len(*record.Message) > 5000 {
		t.Errorf("a message of %d bytes is not shortened, error %v", len(long), err)
	}
}

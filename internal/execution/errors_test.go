package execution_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

func TestInterruptedText(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]struct {
		reason  string
		runtime time.Duration
		want    string
	}{
		"Zero":    {reason: "hours have one digit, the rest has two", want: "0:00:00"},
		"Seconds": {reason: "seconds are carried to minutes", runtime: 100 * time.Second, want: "0:01:40"},
		"Microseconds": {
			reason: "a fraction has six digits", runtime: 1500 * time.Microsecond, want: "0:00:00.001500",
		},
		"Nanoseconds": {
			reason: "nothing below a microsecond is shown", runtime: 1499 * time.Nanosecond, want: "0:00:00.000001",
		},
		"RoundedUp": {reason: "rounding up carries over to the next minute",
			runtime: time.Minute - 1, want: "0:01:00"},
		"AlmostADay": {reason: "hours may have two digits", runtime: day - time.Second, want: "23:59:59"},
		"OneDay":     {reason: "one day is written in the singular", runtime: day, want: "1 day, 0:00:00"},
		"Days": {
			reason: "days are not carried any further", runtime: 400*day + time.Hour, want: "400 days, 1:00:00",
		},
		"DayAndAHalf": {
			reason:  "a day, hours and a fraction are combined",
			runtime: 36*time.Hour + 500*time.Millisecond, want: "1 day, 12:00:00.500000",
		},
		"DayByRounding": {reason: "rounding up carries over to days", runtime: day - 1, want: "1 day, 0:00:00"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := execution.Limits{ID: "fn", Runtime: tc.runtime}.InterruptedError(nil)
			got := execution.Outcome{Err: err}.RecordText(true)
			if d := cmp.Diff("Handler 'fn' has timed out after "+tc.want+".", got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestErrorsOfLimitsArePermanent(t *testing.T) {
	limits := execution.Limits{ID: "fn", Policy: handlers.Policy{Retries: ptr.To(1)}}
	for _, err := range []error{limits.InterruptedError(nil), limits.OutcomeOf(errOrdinary).Err} {
		var permanent interface{ Permanent() bool }
		if !errors.As(err, &permanent) || !permanent.Permanent() {
			t.Errorf("want %v to be permanent, as in Kopf", err)
		}
	}
}

package execution_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// TestRecordText shows the texts of errors in records, in the own wording and in that of Kopf (deviation
// D-error-texts). Recorded cases of Kopf show its texts, too.
func TestRecordText(t *testing.T) {
	month, half := 30*24*time.Hour, 500*time.Millisecond
	long := execution.Limits{ID: "fn", Policy: handlers.Policy{Timeout: &month}, Runtime: month}
	short := execution.Limits{ID: "fn", Policy: handlers.Policy{Timeout: &half}}
	last := execution.Limits{ID: "fn", Policy: handlers.Policy{Retries: ptr.To(1)}}
	used := execution.Limits{ID: "fn", Policy: handlers.Policy{Retries: ptr.To(2)}, Retries: 2}
	cases := map[string]struct {
		reason    string
		err       error
		own, kopf string
	}{
		"LongTimeout": {
			"seconds are written without an exponent, as in Kopf", long.OutcomeOf(temporaryAfter(time.Hour)).Err,
			"gave up, as the next attempt would be after the timeout of 720h0m0s: later",
			"Handler 'fn' failed temporarily but will time out after 2592000 seconds: later",
		},
		"FractionalTimeout": {
			"fractions of seconds are written out", short.OutcomeOf(errOrdinary).Err,
			"gave up, as the next attempt would be after the timeout of 500ms: boo",
			"Handler 'fn' failed with an exception and will stop now " +
				"(it would time out in 0.5 seconds on the next attempt): boo",
		},
		"LastAttempt": {
			"both wordings contain the text of the error",
			panics.Contain(func() error { return last.OutcomeOf(errOrdinary).Err }),
			"gave up after 1 attempt: boo",
			"Handler 'fn' failed with an exception and will stop now " +
				"(it would exceed 1 retries on the next attempt): boo",
		},
		"UsedUp": {
			"exceeded retries without a call have no text of an error",
			used.ExceededError(), "gave up after 2 attempts", "Handler 'fn' has exceeded 2 retries.",
		},
		"Interrupted": {
			"the wording of Kopf for an interruption lacks the returned error", long.InterruptedError(errOrdinary),
			"timed out after 720h0m0s: boo", "Handler 'fn' has timed out after 30 days, 0:00:00.",
		},
		"Pending": {
			"the text of Kopf for pending sub-handlers is None",
			&execution.PendingError{}, "the sub-handlers are not all finished", "None",
		},
		"Wrapped": {
			"the text of a wrapping error is the same in both wordings",
			fmt.Errorf("subs: %w", &execution.PendingError{}),
			"subs: the sub-handlers are not all finished", "subs: the sub-handlers are not all finished",
		},
		"Ordinary": {"the text of an ordinary error is the same in both wordings", errOrdinary, "boo", "boo"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := execution.Outcome{Err: tc.err}
			if d := cmp.Diff([]string{tc.own, tc.kopf}, []string{o.RecordText(false), o.RecordText(true)}); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if tc.err.Error() != tc.own {
				t.Errorf("the error has another text than the record: %s", tc.err)
			}
		})
	}
}

func TestTextsInRecords(t *testing.T) {
	for kopf, want := range map[bool]string{false: "the sub-handlers are not all finished", true: "None"} {
		state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
		state.KopfTexts = kopf
		conclude(t, state, "a", execution.Outcome{Err: &execution.PendingError{}}, epoch)
		if got := state.StateOf("a").AsRecord().Message; got == nil || *got != want {
			t.Errorf("with Kopf's texts %t, the record has %v, want %q", kopf, got, want)
		}
	}
}

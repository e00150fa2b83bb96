package execution_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestAwaiting shows how waits are recorded. See D-awaited.
func TestAwaiting(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	none := func(string) (*progress.Record, error) { return nil, nil }
	wait := execution.PendingError{
		Delay: time.Hour, Wait: progress.Wait{Child: "ConfigMap a", Until: at.Add(time.Hour)},
	}
	limit, left := 10*time.Minute, 6*time.Minute
	for name, c := range map[string]struct {
		reason  string
		then    execution.Outcome
		awaits  bool
		retries int
		delayed time.Duration
		waited  string
	}{
		"a wait": {"a wait does not count as an attempt",
			execution.Limits{}.PendingOutcome(&wait), true, 0, time.Hour, "ConfigMap a"},
		"a limit": {
			"a wait ends with the timeout of the handler",
			execution.Limits{Policy: handlers.Policy{Timeout: &limit}}.PendingOutcome(&wait), true, 0, limit,
			"ConfigMap a",
		},
		"the rest of a limit": {
			"a wait ends with the rest of the timeout",
			execution.Limits{
				Policy: handlers.Policy{Timeout: &limit}, Runtime: limit - left,
			}.PendingOutcome(&wait), true, 0, left, "ConfigMap a",
		},
		"an error": {
			"an error keeps the time of the wait, but delays the handler by its backoff",
			execution.Limits{Backoff: time.Minute}.OutcomeOf(errors.New("no")), false, 1, time.Minute, "ConfigMap a",
		},
		"a sub-handler": {
			"the wait of a sub-handler has no time of its own in its parent",
			execution.Limits{}.PendingOutcome(&execution.PendingError{
				Delay: limit, Wait: progress.Wait{Child: "ConfigMap b"},
			}),
			true, 0, limit, "",
		},
		"a success": {"a success ends the wait", execution.Limits{}.OutcomeOf(nil), false, 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := execution.RestoreState(none, []string{"h"}, []string{"h"}, "create", at)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []execution.Outcome{execution.Limits{}.PendingOutcome(&wait), c.then} {
				if err := state.ConcludeAttempt("h", o, at); err != nil {
					t.Fatal(err)
				}
			}
			h := state.StateOf("h")
			account := h.Account()
			if h.AwaitsChild() != c.awaits || h.Retries != c.retries || h.NextDelay(at) != c.delayed ||
				account.LastWait.Child != c.waited {
				t.Errorf("%s: awaits %t, retries %d, delay %s, waited %+v", c.reason, h.AwaitsChild(), h.Retries,
					h.NextDelay(at), account.LastWait)
			}
			if h.MarkAwake(); c.awaits && (h.NextDelay(at) != 0 || h.Account().Until.After(at) ||
				h.AsRecord().Delayed == nil) {
				t.Error("an awakened handler is not due, or its record has lost the delay")
			}
		})
	}
}

// TestErrorsEndWaits shows that an error ends a wait without a time of its own, such as that of a sub-handler, and a
// wait whose time is over.
func TestErrorsEndWaits(t *testing.T) {
	for reason, until := range map[string]time.Time{"no time": {}, "its time is over": at(0)} {
		state := restore(t, nil, []string{"h"}, []string{"h"}, "create")
		if state.StateOf("h").AwaitsChild() {
			t.Error("a handler that was not called yet waits")
		}
		wait := execution.PendingError{Delay: time.Hour, Wait: progress.Wait{Child: "ConfigMap a", Until: until}}
		conclude(t, state, "h", execution.Limits{}.PendingOutcome(&wait), at(0))
		conclude(t, state, "h", execution.Limits{}.OutcomeOf(errOrdinary), at(1))
		if h := state.StateOf("h"); h.AwaitsChild() || h.AsRecord().Awaited != nil || h.Account().LastWait.Child != "" {
			t.Errorf("%s: got %+v", reason, h.AsRecord())
		}
	}
}

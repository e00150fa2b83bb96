package memory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestErrorDelays shows the growing delays after errors of the framework.
func TestErrorDelays(t *testing.T) {
	tests := map[string]struct {
		reason     string
		delays     []time.Duration
		failures   int
		want       time.Duration
		retryAfter time.Duration
	}{
		"First": {
			"the first failure has the first delay",
			kind.DefaultErrorDelays,
			0,
			time.Second,
			0,
		},
		"Fibonacci": {"further failures have growing delays, as in Kopf",
			kind.DefaultErrorDelays, 6, 13 * time.Second, 0},
		"Last":       {"the last delay is about ten minutes", kind.DefaultErrorDelays, 14, 610 * time.Second, 0},
		"Repeating":  {"the last delay repeats", kind.DefaultErrorDelays, 1000, 610 * time.Second, 0},
		"Own":        {"custom delays replace the default ones", []time.Duration{time.Minute}, 0, time.Minute, 0},
		"OwnRepeats": {"the last custom delay repeats", []time.Duration{time.Minute, time.Hour}, 7, time.Hour, 0},
		"Asked":      {"a longer delay requested by the server applies", nil, 0, time.Minute, time.Minute},
		"Longer": {"a shorter delay requested by the server does not apply",
			kind.DefaultErrorDelays, 14, 610 * time.Second, time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var own memory.Throttle
			for range tc.failures {
				own.CountFailure(tc.delays, tc.retryAfter, time.Now())
			}
			if got, again := own.CountFailure(tc.delays, tc.retryAfter, time.Now()); got != tc.want || !again {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestNoErrorDelays shows that an empty list of delays disables retries.
func TestNoErrorDelays(t *testing.T) {
	var own memory.Throttle
	if delay, again := own.CountFailure(nil, 0, time.Now()); again || delay != 0 || own != (memory.Throttle{}) {
		t.Errorf(
			"without delays nothing is retried or kept: got %s, %v, %+v", delay, again, own,
		)
	}
}

// TestVectorsThrottling makes one attempt for each event of an object. A new event ends the sleep after a failure, but
// makes no attempt before its time.
func TestVectorsThrottling(t *testing.T) {
	vectors.Run(t, "throttling", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "delays", "attempts")
		delays := []time.Duration{}
		for _, item := range input.List("delays") {
			delays = append(delays, secondsOf(item))
		}
		start := time.Unix(1000, 0)
		now, throttled, got := start, memory.Throttle{}, []any{}
		for _, item := range input.List("attempts") {
			attempt := vectors.Known(t, item, "at", "fails", "wakeup_after")
			if at := vectors.Number(t, attempt, "at"); at != nil && now.Before(start.Add(secondsOf(*at))) {
				now = start.Add(secondsOf(*at))
			}
			began := now
			// sleep advances the time by the delay, or to the next event if that is earlier.
			sleep := func(delay time.Duration) (woken bool) {
				now = now.Add(delay)
				if after := vectors.Number(
					t, attempt, "wakeup_after",
				); after != nil && began.Add(secondsOf(*after)).Before(now) {
					now, woken = began.Add(secondsOf(*after)), true
				}
				return woken
			}
			woken := sleep(throttled.RemainingDelay(now))
			entry := map[string]any{"started": began.Sub(start).Seconds(), "ran": !woken, "escalated": nil}
			if !woken && attempt.Flag("fails") {
				delay, _ := throttled.CountFailure(delays, 0, now)
				sleep(delay)
			} else if !woken {
				throttled.ResetFailures()
			}
			entry["ended"] = now.Sub(start).Seconds()
			got = append(got, entry)
		}
		if !diff.Equal(want.Value, got) {
			t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, any(got)))
		}
	})
}

func secondsOf(value any) time.Duration {
	switch value := value.(type) {
	case int64:
		return time.Duration(value) * time.Second
	case float64:
		return time.Duration(value * float64(time.Second))
	default:
		return 0
	}
}

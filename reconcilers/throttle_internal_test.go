package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// One attempt for each event of an object: a new event ends the sleep after a failure, but brings no attempt before its
// time.
func TestVectorsThrottling(t *testing.T) {
	vectors.Run(t, "throttling", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "delays", "attempts")
		delays := []time.Duration{}
		for _, item := range input.List("delays") {
			delays = append(delays, seconds(item))
		}
		start := time.Unix(1000, 0)
		now, throttled, got := start, throttle{}, []any{}
		for _, item := range input.List("attempts") {
			attempt := vectors.Known(t, item, "at", "fails", "wakeup_after")
			if at := vectors.Number(t, attempt, "at"); at != nil && now.Before(start.Add(seconds(*at))) {
				now = start.Add(seconds(*at))
			}
			began := now
			// sleep is until the next event, if that comes earlier.
			sleep := func(delay time.Duration) (woken bool) {
				now = now.Add(delay)
				if after := vectors.Number(
					t, attempt, "wakeup_after",
				); after != nil && began.Add(seconds(*after)).Before(now) {
					now, woken = began.Add(seconds(*after)), true
				}
				return woken
			}
			woken := sleep(throttled.wait(now))
			entry := map[string]any{"started": began.Sub(start).Seconds(), "ran": !woken, "escalated": nil}
			if !woken && attempt.Flag("fails") {
				delay, _ := throttled.fail(delays, now)
				sleep(delay)
			} else if !woken {
				throttled.succeed()
			}
			entry["ended"] = now.Sub(start).Seconds()
			got = append(got, entry)
		}
		if !diff.Equal(want.Value, got) {
			t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, any(got)))
		}
	})
}

func seconds(value any) time.Duration {
	switch value := value.(type) {
	case int64:
		return time.Duration(value) * time.Second
	case float64:
		return time.Duration(value * float64(time.Second))
	default:
		return 0
	}
}

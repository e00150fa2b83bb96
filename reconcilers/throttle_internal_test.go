package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// One attempt for each event of an object: a new event ends the sleep after a failure, but brings no attempt before its time.
func TestVectorsThrottling(t *testing.T) {
	vectors.Run(t, "throttling", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "delays", "attempts")
		delays := []time.Duration{}
		for _, item := range input.List("delays") {
			delays = append(delays, seconds(item))
		}
		start := time.Unix(1000, 0)
		now, throttled, got := start, throttle{}, []any{}
		// sleep is until the next event, if that comes earlier.
		sleep := func(delay time.Duration, attempt vectors.Fields) (woken bool) {
			if attempt["wakeup_after"] != nil && seconds(attempt["wakeup_after"]) < delay {
				delay, woken = seconds(attempt["wakeup_after"]), true
			}
			now = now.Add(delay)
			return woken
		}
		for _, item := range input.List("attempts") {
			attempt := vectors.Known(t, item, "fails", "wakeup_after")
			entry := map[string]any{"started": now.Sub(start).Seconds(), "escalated": nil}
			woken := sleep(throttled.wait(now), attempt)
			entry["ran"] = !woken
			if !woken && attempt.Flag("fails") {
				delay, _ := throttled.fail(delays, now)
				sleep(delay, attempt)
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

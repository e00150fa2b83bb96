package reconcilers

import "time"

// throttle spaces the passes over one object while the framework fails for it. The zero value does not.
type throttle struct {
	failures int // in a row
	until    time.Time
}

// wait is how long no pass may be made yet.
func (t *throttle) wait(now time.Time) time.Duration { return max(0, t.until.Sub(now)) }

// fail counts a failure, and gives the delay before the next pass: the next one of the list, or its last. With no
// delays, there is none, and the object waits for its next event.
func (t *throttle) fail(delays []time.Duration, now time.Time) (delay time.Duration, again bool) {
	if len(delays) == 0 {
		return 0, false
	}
	delay = delays[min(t.failures, len(delays)-1)]
	t.failures++
	t.until = now.Add(delay)
	return delay, true
}

// succeed begins anew.
func (t *throttle) succeed() { *t = throttle{} }

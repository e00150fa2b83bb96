package memory

import "time"

// DefaultErrorDelays space the passes over an object while the framework fails for it. The last one repeats.
// Kopf: queueing.error_delays.
var DefaultErrorDelays = []time.Duration{
	1 * time.Second, 1 * time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second,
	13 * time.Second, 21 * time.Second, 34 * time.Second, 55 * time.Second, 89 * time.Second, 144 * time.Second,
	233 * time.Second, 377 * time.Second, 610 * time.Second,
}

// Throttle spaces the passes over one object while the framework fails for it. The zero value does not.
type Throttle struct {
	failures int // in a row
	until    time.Time
}

// Wait is how long no pass may be made yet.
func (t *Throttle) Wait(now time.Time) time.Duration { return max(0, t.until.Sub(now)) }

// Fail counts a failure, and gives the delay before the next pass: the next one of the list, or its last. With no
// delays, there is none, and the object waits for its next event.
func (t *Throttle) Fail(delays []time.Duration, now time.Time) (delay time.Duration, again bool) {
	if len(delays) == 0 {
		return 0, false
	}
	delay = delays[min(t.failures, len(delays)-1)]
	t.failures++
	t.until = now.Add(delay)
	return delay, true
}

// Succeed begins anew.
func (t *Throttle) Succeed() { *t = Throttle{} }

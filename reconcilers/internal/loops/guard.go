package loops

import (
	"maps"
	"slices"
	"time"
)

const (
	// Threshold is the number of calls within one Window that count as a loop.
	Threshold = 10
	// Window is the time within which calls are counted.
	Window = time.Minute
	// FirstDelay is the delay of the first call after a loop was found. It doubles with each further call.
	FirstDelay = time.Second
	// LongestDelay limits the delay.
	LongestDelay = 10 * time.Minute
)

// Guard watches the handlers of one object. The zero value is ready to use. It must not be used concurrently.
type Guard struct {
	members map[string]bool // ids of the handlers that keep the loop running
	count   int             // calls in this window that led to a write
	since   time.Time       // beginning of the window
	last    time.Time       // time of the last call that led to a write
	delay   time.Duration   // delay of the next call; zero until a loop is found
}

// NoteCalls counts one call of these handlers that was caused by an own write. The handlers in wrote have changed the object
// again. It returns the delay of their next such call, and whether the loop was found by this call; a zero delay means
// that there is no loop. A loop ends with a call in which no handler writes.
func (g *Guard) NoteCalls(called, wrote []string, now time.Time) (delay time.Duration, isNew bool) {
	if len(wrote) == 0 {
		// Without a write, no further call follows. If a member of the loop was among the handlers, the loop is over.
		for _, id := range called {
			if g.members[id] {
				*g = Guard{}
				break
			}
		}
		return 0, false
	}
	// Until a loop is found, each window counts from zero. A loop has no window, because its calls are delayed.
	if g.ExpireLoop(now); g.delay == 0 && now.Sub(g.since) > Window {
		*g = Guard{since: now}
	}
	if g.members == nil {
		g.members = map[string]bool{}
	}
	for _, id := range wrote {
		g.members[id] = true
	}
	// All calls of a window count together, whichever of the handlers wrote.
	g.count, g.last = g.count+1, now
	if g.count < Threshold {
		return 0, false
	}
	isNew = g.delay == 0
	g.delay = min(max(FirstDelay, 2*g.delay), LongestDelay)
	return g.delay, isNew
}

// DelayedUntil returns the time from which an own write may call the handler. The zero time permits it now.
func (g *Guard) DelayedUntil(id string) time.Time {
	if g.delay == 0 || !g.members[id] {
		return time.Time{}
	}
	return g.last.Add(g.delay)
}

// ExpireLoop ends a loop whose handlers were not called for long, for example because their filters have changed.
func (g *Guard) ExpireLoop(now time.Time) {
	if now.Sub(g.last) > Window+2*g.delay {
		*g = Guard{}
	}
}

// LoopMembers returns the ids of the handlers that keep the loop running, sorted.
func (g *Guard) LoopMembers() []string { return slices.Sorted(maps.Keys(g.members)) }

// IsIdle reports whether no calls are counted, so that the Guard can be dropped.
func (g *Guard) IsIdle() bool { return g.count == 0 }

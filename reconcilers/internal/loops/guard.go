package loops

import (
	"maps"
	"slices"
	"time"
)

const (
	// Threshold is how many calls in one Window are a loop.
	Threshold = 10
	// Window is the time in which calls are counted.
	Window = time.Minute
	// FirstDelay is the delay of the first call after that. Each further one waits twice as long.
	FirstDelay = time.Second
	// LongestDelay bounds the delay.
	LongestDelay = 10 * time.Minute
)

// Guard watches the handlers of one object. The zero value has seen nothing. It must not be used concurrently.
type Guard struct {
	members map[string]bool // the handlers that keep the loop going
	count   int             // the calls of this window that have written
	since   time.Time       // when the window began
	last    time.Time       // when a call has written last
	delay   time.Duration   // zero until a loop is found
}

// Note takes account of one call of each of these handlers, which an own write has caused. Wrote are those of them that
// have changed the object again. It returns the delay of their next such call, and whether the loop was found just now;
// zero means that there is no loop. A loop ends when its handlers do not write.
func (g *Guard) Note(called, wrote []string, now time.Time) (delay time.Duration, isNew bool) {
	if len(wrote) == 0 {
		for _, id := range called {
			if g.members[id] {
				*g = Guard{}
				break
			}
		}
		return 0, false
	}
	if g.Expire(now); g.delay == 0 && now.Sub(g.since) > Window {
		*g = Guard{since: now}
	}
	if g.members == nil {
		g.members = map[string]bool{}
	}
	for _, id := range wrote {
		g.members[id] = true
	}
	g.count, g.last = g.count+1, now
	if g.count < Threshold {
		return 0, false
	}
	isNew = g.delay == 0
	g.delay = min(max(FirstDelay, 2*g.delay), LongestDelay)
	return g.delay, isNew
}

// Until returns when an own write may call the handler; the zero time is at once.
func (g *Guard) Until(id string) time.Time {
	if g.delay == 0 || !g.members[id] {
		return time.Time{}
	}
	return g.last.Add(g.delay)
}

// Expire forgets a loop whose handlers were not called for long, such as after their filters have changed.
func (g *Guard) Expire(now time.Time) {
	if now.Sub(g.last) > Window+2*g.delay {
		*g = Guard{}
	}
}

// Members are the handlers that keep the loop going, sorted.
func (g *Guard) Members() []string { return slices.Sorted(maps.Keys(g.members)) }

// Idle is true if nothing was counted.
func (g *Guard) Idle() bool { return g.count == 0 }

package kind

import (
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

const (
	// loopThreshold is the number of calls within one loopWindow that count as a loop.
	loopThreshold = 10
	// loopWindow is the time within which calls are counted.
	loopWindow = time.Minute
	// firstLoopDelay is the delay of the first call after a loop was found. It doubles with each further call.
	firstLoopDelay = time.Second
	// LongestLoopDelay limits the delay.
	LongestLoopDelay = 10 * time.Minute
)

// LoopGuard watches the handlers of one object. The zero value is ready to use. It must not be used concurrently.
type LoopGuard struct {
	members map[string]bool // ids of the handlers that keep the loop running
	count   int             // calls in this window that led to a write
	since   time.Time       // beginning of the window
	last    time.Time       // time of the last call that led to a write
	delay   time.Duration   // delay of the next call; zero until a loop is found
}

// NoteCalls counts one call of these handlers that was caused by an own write. The handlers in wrote have changed the
// object again. It returns the delay of their next such call, and whether the loop was found by this call; a zero delay
// means that there is no loop. A loop ends with a call in which no handler writes.
func (g *LoopGuard) NoteCalls(called, wrote []string, now time.Time) (delay time.Duration, isNew bool) {
	if len(wrote) == 0 {
		// Without a write, no further call follows. If a member of the loop was among the handlers, the loop is over.
		for _, id := range called {
			if g.members[id] {
				*g = LoopGuard{}
				break
			}
		}
		return 0, false
	}
	// Until a loop is found, each window counts from zero. A loop has no window, because its calls are delayed.
	if g.ExpireLoop(now); g.delay == 0 && now.Sub(g.since) > loopWindow {
		*g = LoopGuard{since: now}
	}
	if g.members == nil {
		g.members = map[string]bool{}
	}
	for _, id := range wrote {
		g.members[id] = true
	}
	// All calls of a window count together, whichever of the handlers wrote.
	g.count, g.last = g.count+1, now
	if g.count < loopThreshold {
		return 0, false
	}
	isNew = g.delay == 0
	g.delay = min(max(firstLoopDelay, 2*g.delay), LongestLoopDelay)
	return g.delay, isNew
}

// DelayedUntil returns the time from which an own write may call the handler. The zero time permits it now.
func (g *LoopGuard) DelayedUntil(id string) time.Time {
	if g.delay == 0 || !g.members[id] {
		return time.Time{}
	}
	return g.last.Add(g.delay)
}

// ExpireLoop ends a loop whose handlers were not called for long, for example because their filters have changed.
func (g *LoopGuard) ExpireLoop(now time.Time) {
	if now.Sub(g.last) > loopWindow+2*g.delay {
		*g = LoopGuard{}
	}
}

// LoopMembers returns the ids of the handlers that keep the loop running, sorted.
func (g *LoopGuard) LoopMembers() []string { return slices.Sorted(maps.Keys(g.members)) }

// IsIdle reports whether no calls are counted, so that the LoopGuard can be dropped.
func (g *LoopGuard) IsIdle() bool { return g.count == 0 }

// maxLoggedFields limits the number of fields in one log line.
const maxLoggedFields = 8

// LogLoop warns about a loop, with the handlers that keep it running and the fields that they change.
func LogLoop(log logr.Logger, handlers []string, changed []diff.Path, delay time.Duration) {
	var fields []string
	for _, path := range changed {
		if field := path.String(); len(fields) < maxLoggedFields && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	logging.Warn(log, "Handlers change the object each time that their own change calls them; delaying these calls, "+
		"longer each time", "handlers", handlers, "fields", fields, "calls", loopThreshold,
		"within", loopWindow.String(), "delay", delay.String())
}

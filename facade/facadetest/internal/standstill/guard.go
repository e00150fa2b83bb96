package standstill

import (
	"runtime"
	"sync"
	"time"
)

const (
	// interval is the real time between two looks at the guarded bubbles.
	interval = 2 * time.Second
	// requiredChecks is the number of consecutive looks that must show the same state. One look is a proof, unless a
	// goroutine outside of the bubble holds the mutex: that one needs time to release it.
	requiredChecks = 5
)

// guards holds the guarded bubbles by their ids.
type guards struct {
	mu       sync.Mutex
	byBubble map[string]*bubbleGuard
}

// bubbleGuard is one guarded bubble.
type bubbleGuard struct {
	report func(text string)
	state  string // signature at the last look, empty if virtual time advanced then
	checks int    // consecutive looks with this state
}

// allGuards holds the guarded bubbles of the process: one timer looks at all of them.
var allGuards = guards{byBubble: map[string]*bubbleGuard{}}

// The first timer is made before any bubble, and so all of them follow real time. A goroutine that waits for it would
// look like a leak to tests that search for them.
func init() { time.AfterFunc(interval, checkRepeatedly) }

// checkRepeatedly looks at the guarded bubbles permanently, each time this long after the previous look.
func checkRepeatedly() {
	allGuards.checkBubbles(AllStacks)
	time.AfterFunc(interval, checkRepeatedly)
}

// GuardBubble watches the bubble of the caller until end is called. If virtual time stops, it calls report once with
// the reason, on a goroutine outside of the bubble. Outside of a bubble, and in a bubble that is already guarded, it
// does nothing.
func GuardBubble(report func(text string)) (end func()) {
	id := bubbleOf(stackHeader(callerStack()))
	allGuards.mu.Lock()
	defer allGuards.mu.Unlock()
	if id == "" || allGuards.byBubble[id] != nil {
		return func() {}
	}
	allGuards.byBubble[id] = &bubbleGuard{report: report}
	return func() {
		allGuards.mu.Lock()
		defer allGuards.mu.Unlock()
		delete(allGuards.byBubble, id)
	}
}

// checkBubbles compares the guarded bubbles with their state at the last look.
func (g *guards) checkBubbles(stacks func() string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Reading the stacks stops all goroutines of the process, so it is avoided when possible.
	if len(g.byBubble) == 0 {
		return
	}
	found := findStoppedBubbles(stacks())
	for id, one := range g.byBubble {
		state, stands := found[id]
		switch {
		case !stands:
			one.state, one.checks = "", 0
			continue
		case one.state != state.signature:
			one.state, one.checks = state.signature, 0
		}
		if one.checks++; one.checks == requiredChecks {
			// The report can panic or call end, which needs the lock.
			go one.report(state.describeWaits())
		}
	}
}

// callerStack returns the start of the caller's stack. Only its header is used, so the buffer is small.
func callerStack() string {
	buffer := make([]byte, 1<<10)
	return string(buffer[:runtime.Stack(buffer, false)])
}

// AllStacks returns the stacks of all goroutines. runtime.Stack truncates silently, so the buffer grows until it is not
// full.
func AllStacks() string {
	for size := 1 << 20; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return string(buffer[:n])
		}
	}
}

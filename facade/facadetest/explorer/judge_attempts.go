package explorer

import (
	"fmt"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

const (
	// outcomeGrace is the time within which an outcome is written, including the write itself. Operators with a longer
	// interval repeat more attempts than the explorer permits.
	outcomeGrace = time.Second
	// disturbanceGrace is added to it if a write was disturbed, and therefore retried.
	disturbanceGrace = 3 * time.Second
)

// judgeAttempts finds calls that the troubles of the course do not explain, and concurrent calls.
func (r *run) judgeAttempts(uncut *run) {
	// The uncut run shows how often a handler is called for a change without any trouble.
	usual := map[change]map[int]int{}
	if uncut != nil {
		for _, a := range uncut.attempts {
			countAttempt(usual, a)
		}
	}
	here := map[change]map[int]int{}
	explained := map[change]map[int]int{}
	for _, a := range r.attempts {
		if a.family != handlers.Changing || a.object == "" {
			continue
		}
		countAttempt(here, a)
		if explained[a.change] == nil {
			explained[a.change] = map[int]int{}
		}
		// The reasons of this attempt permit later ones. The number of permitted attempts grows while the run is
		// replayed.
		explained[a.change][a.retry] += r.explainedRepeats(a)
		allowed := max(1, usual[a.change][a.retry]) + explained[a.change][a.retry]
		if n := here[a.change][a.retry]; n > allowed {
			r.addViolation(Repeated, a.violationSubject(), fmt.Sprintf(
				"attempt %d is made %d times for one change; what went wrong explains %d", a.retry+1, n, allowed))
		}
	}
	r.judgeConcurrency()
}

// countAttempt counts an attempt by its change and its retry number.
func countAttempt(of map[change]map[int]int, a *attempt) {
	if of[a.change] == nil {
		of[a.change] = map[int]int{}
	}
	of[a.change][a.retry]++
}

// explainedRepeats returns the number of additional attempts that an attempt explains: it was cut off, its outcome was
// possibly not written, or it waits for something.
func (r *run) explainedRepeats(a *attempt) (n int) {
	// Waiting is not a failure: the handler runs again by design.
	if a.err != nil && strings.HasPrefix(a.err.Error(), "waits for ") {
		return 1
	}
	// A kill before the outcome was written repeats the attempt in the next life.
	for _, at := range r.killTimes {
		if r.cutOff(a, at) {
			n++
		}
	}
	// A disturbed write may have lost the outcome.
	for _, at := range r.disturbanceTimes {
		if at >= a.start {
			n++
		}
	}
	return n
}

// cutOff reports whether a kill happened between the start of an attempt and the write of its outcome.
func (r *run) cutOff(a *attempt, kill time.Duration) bool {
	if kill < a.start {
		return false
	}
	grace := outcomeGrace
	if len(r.disturbanceTimes) > 0 {
		grace += disturbanceGrace
	}
	return !a.done || kill <= a.end+grace
}

// judgeConcurrency finds concurrent attempts of one handler for one object, also from two lives.
func (r *run) judgeConcurrency() {
	for i, a := range r.attempts {
		for _, b := range r.attempts[i+1:] {
			// Only handlers of changes and background handlers must not run twice at the same time.
			if a.object == "" || a.object != b.object || a.handler != b.handler || a.family != b.family ||
				a.family != handlers.Changing && a.family != handlers.Background {
				continue
			}
			if b.start < r.endOf(a) {
				r.addViolation(Concurrent, a.handler+" for "+a.object, fmt.Sprintf(
					"%s begins at %s, when %s has not ended", b, b.start, a))
			}
		}
	}
}

// endOf returns the time when an attempt ended, by its return or by the death of its process.
func (r *run) endOf(a *attempt) time.Duration {
	if a.done {
		return a.end
	}
	for _, kill := range r.killTimes {
		if kill >= a.start {
			return kill
		}
	}
	// It never ended: every later attempt is concurrent.
	return 1<<63 - 1
}

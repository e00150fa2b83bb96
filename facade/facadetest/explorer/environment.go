package explorer

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/standstill"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const (
	// restartDelay is the time between a kill and the next start.
	restartDelay = time.Second
	// maxExits limits how often an operator may end without being killed on one course.
	maxExits = 10
	// maxPoints limits the points of a run, as a protection against runs that never become idle.
	maxPoints = 2000
)

// playScenario plays a scenario on one course, in a bubble of its own.
func playScenario(t *testing.T, scenario func() Scenario, s settings, c course) *run {
	t.Helper()
	r := &run{course: c, objectsWithFinalizers: map[string]bool{}}
	runInBubble(t, c, func(t *testing.T) {
		w := &environment{
			// The channels are created in the bubble, because synctest requires that.
			settings: s, run: r, startTime: time.Now(), counts: map[string]int{}, activeAttempts: map[*attempt]bool{},
			operatorStarted: make(chan struct{}), courseEnded: make(chan struct{}),
			effectSemaphore: make(chan struct{}, 1),
			stopping:        make(chan struct{}), ended: make(chan struct{}),
		}
		w.tb = &courseTB{TB: t, scenario: scenario, onFailure: w.failCourse}
		// A scenario may fail in its constructor; then there is no server to play against.
		runAlone(w.setUpServer)
		if w.server != nil {
			go runAlone(w.runLives)
			runAlone(w.playAndRecord)
			w.stopLives()
		}
		w.tb.runCleanups()
	})
	return r
}

// runInBubble runs a course in a bubble. If the bubble is deadlocked, the test fails at once and abandons the bubble,
// because a bubble with blocked goroutines cannot end.
func runInBubble(t *testing.T, c course, f func(t *testing.T)) {
	t.Helper()
	// returned distinguishes a course that ended the goroutine by FailNow from one that returned.
	stuck, done, returned := make(chan string, 1), make(chan struct{}), false
	go func() {
		defer close(done)
		synctest.Test(t, func(t *testing.T) {
			defer standstill.GuardBubble(func(text string) { stuck <- text })()
			f(t)
		})
		returned = true
	}()
	select {
	case text := <-stuck:
		t.Fatalf("explorer: course %s: %s\n\nPlay it again: %s", c, text, replayCommand(t.Name(), c.String()))
	case <-done:
		if !returned {
			t.FailNow()
		}
	}
}

// runAlone calls a function in a goroutine of its own, because the function may end its goroutine.
func runAlone(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// setUpServer creates the scenario, the API server and the play's client.
func (w *environment) setUpServer() {
	w.scenario = w.tb.scenario()
	w.scenario.fillDefaults(w.tb)
	server := w.scenario.Server(w.tb)
	server.CollectGarbage(0)
	types := w.scenario.Scheme
	if types == nil {
		types = scheme.Scheme
	}
	people, err := client.New(memapi.Config(&userTransport{environment: w, server: server}),
		client.Options{Scheme: types})
	if err != nil {
		w.tb.Fatalf("making a client for people: %v", err)
	}
	w.client, w.server = people, server
	// Objects that exist at the beginning are not leaks.
	w.run.initialState = w.currentState()
}

// playAndRecord plays the scenario, and records the states that are compared.
func (w *environment) playAndRecord() {
	<-w.operatorStarted
	p := &Play{Client: w.client, T: w.tb, environment: w}
	w.scenario.Play(p)
	p.Settle()
	w.restartIfNeeded(p)
	w.run.finalState = w.currentState()
	w.run.complete = true
	if !w.settings.keepObjects && !w.isExhausted() {
		w.deleteCreated(p)
		w.run.leftoverState = w.currentState()
		w.run.cleared = true
	}
}

// restartIfNeeded restarts the operator if a start calls functions or writes anything. Each kill leads to such a start,
// so every course needs one before its state can be compared. The uncut run determines whether that is so.
func (w *environment) restartIfNeeded(p *Play) {
	// An exhausted operator is not started again.
	if w.isExhausted() || !w.settings.needsRestart && len(w.run.course) > 0 {
		return
	}
	w.mu.Lock()
	called, reached := len(w.run.attempts), len(w.run.points)
	if !w.currentLife.dead {
		w.currentLife.killProcess("is restarted, because everything is idle")
	}
	w.mu.Unlock()
	p.Settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run.needsRestart = len(w.run.attempts) > called || len(w.run.points) > reached
}

// stopLives stops the last life and releases the goroutines of dead ones.
func (w *environment) stopLives() {
	// Events of the shutdown do not belong to the course.
	w.mu.Lock()
	w.run.closed = true
	w.mu.Unlock()
	close(w.stopping)
	<-w.ended
	close(w.courseEnded)
}

// isExhausted reports whether the operator was ended because it did not become idle.
func (w *environment) isExhausted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run.exhausted
}

// failCourse records a failure of the test as a violation of the course.
func (w *environment) failCourse(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.run.closed {
		w.run.addViolation(Broken, "", text)
	}
}

// nextPlace returns the next place for a subject, such as write-2-of-databases/orders.
func (w *environment) nextPlace(what, subject string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what+" "+subject]++
	return fmt.Sprintf("%s-%d-of-%s", what, w.counts[what+" "+subject], subject)
}

// strikesOnce reports whether the course has the trouble and it has not occurred yet, and marks it as occurred. The
// caller holds the lock.
func (w *environment) strikesOnce(t trouble) bool {
	if !slices.Contains(w.run.course, t) || slices.Contains(w.run.occurredTroubles, t) {
		return false
	}
	w.run.occurredTroubles = append(w.run.occurredTroubles, t)
	return true
}

// troubleAt returns the disturbance of the course for a write, or an empty one.
func (w *environment) troubleAt(l *Life, place string) disturbance {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.run.course {
		// The place nextLife matches the first write after the first life.
		due := t.place == place || t.place == nextLife && l.number > 1
		if t.kind == cut || t.place == "" || !due || !w.strikesOnce(t) {
			continue
		}
		w.run.noteAt(w.elapsedTime(), "the API", fmt.Sprintf("%s at %s", t.kind, place))
		w.run.disturbanceTimes = append(w.run.disturbanceTimes, w.elapsedTime())
		return t.kind
	}
	return ""
}

// elapsedTime returns the time since the start of the course. It does not need the lock.
func (w *environment) elapsedTime() time.Duration { return time.Since(w.startTime) }

// noteLine adds a line to the history, unless the life is dead.
func (w *environment) noteLine(l *Life, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !l.dead {
		w.run.noteAt(w.elapsedTime(), fmt.Sprintf("life %d", l.number), text)
	}
}

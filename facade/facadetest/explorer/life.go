package explorer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
)

// Errors that a client of the operator receives.
var (
	errDead            = errors.New("the process is dead")
	errConnectionReset = errors.New("connection reset by peer")
)

// Do performs an effect outside of the cluster, such as the creation of a volume. Fakes call it with the name that a
// history shows. The points before and after the effect can be cut. In a dead life, Do does not perform the effect, and
// blocks until the course is over. Effects are serialized, so that fakes do not need locks; an effect must not call Do.
func (l *Life) Do(name string, effect func()) {
	<-l.started
	place := l.environment.nextPlace("effect", courseLabel(name))
	if l.reachPoint(point{place: "before-" + place}) == nil && l.performEffect(name, effect) &&
		l.reachPoint(point{place: "after-" + place}) == nil {
		return
	}
	// Handlers of a killed process do not continue.
	<-l.environment.courseEnded
}

// performEffect performs an effect when no other one runs. It reports false, without performing it, if the life is
// dead.
func (l *Life) performEffect(name string, effect func()) bool {
	w := l.environment
	w.effectSemaphore <- struct{}{}
	defer func() { <-w.effectSemaphore }()
	if w.isDead(l) {
		return false
	}
	effect()
	w.noteLine(l, "outside: "+name)
	return true
}

// isDead reports whether the life was killed.
func (w *environment) isDead(l *Life) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.dead
}

// reachPoint records a point, and kills the process if the course cuts it there.
func (l *Life) reachPoint(p point) error {
	w := l.environment
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead {
		return errDead
	}
	w.run.points = append(w.run.points, p)
	at := trouble{cut, p.place}
	// The first write of the second life can be cut without being a known point: points of that life depend on the
	// first cut.
	if p.write != nil && l.number == 2 && !l.hasWritten {
		l.hasWritten = true
		if w.strikesOnce(trouble{cut, nextLife}) {
			at = trouble{cut, nextLife}
		}
	}
	// An operator that never becomes idle would run forever in virtual time.
	if len(w.run.points) > maxPoints && !w.run.exhausted {
		w.run.exhausted = true
		w.run.addViolation(Restless, "", fmt.Sprintf("something still happens after %d requests and effects",
			maxPoints))
	} else if at.place != nextLife && !w.strikesOnce(at) {
		return nil
	}
	l.killProcess("KILLED " + p.place)
	return errDead
}

// killProcess kills the process. The caller holds the lock of the world.
func (l *Life) killProcess(how string) {
	l.environment.markDead(l, how)
	l.environment.run.killTimes = append(l.environment.run.killTimes, l.environment.elapsedTime())
	close(l.killed)
	l.runner.Kill()
}

// markDead marks a life as dead: its actions are not recorded from now on. The caller holds the lock.
func (w *environment) markDead(l *Life, how string) {
	l.dead = true
	w.run.noteAt(w.elapsedTime(), fmt.Sprintf("life %d", l.number), how)
	// The attempts of a dead process must not keep the world from becoming idle.
	for a := range w.activeAttempts {
		if a.lifeNumber == l.number {
			delete(w.activeAttempts, a)
		}
	}
}

// startLife starts a new process. It shares only the API server and the outside systems with earlier ones.
func (w *environment) startLife() *Life {
	w.mu.Lock()
	w.lifeCount++
	l := &Life{number: w.lifeCount, environment: w, started: make(chan struct{}), killed: make(chan struct{})}
	w.mu.Unlock()
	// A new connection, because the former one is cut with its process.
	l.connection = w.server.Connect()
	l.connection.Before, l.connection.After = l.beforeRequest, l.afterRequest
	w.noteLine(l, "is started")
	// The hooks observe the calls of handlers.
	ctx := kit.ContextWithHooks(w.tb.Context(), kit.Hooks{Observer: l.observeAttempt})
	op := w.scenario.Operator(l)
	l.ready = op.Ready()
	l.runner = facadetest.Start(contextTB{w.tb, ctx}, op, facadetest.Against(memapi.Config(w.scenario.Through(l))))
	w.mu.Lock()
	w.currentLife = l
	w.mu.Unlock()
	// From here on, requests and handlers of the life may proceed.
	close(l.started)
	return l
}

// contextTB is a test with another context, through which the engine finds the observer.
type contextTB struct {
	*courseTB
	ctx context.Context //nolint:containedctx // tests give their contexts
}

// Context returns the context with the hooks of the explorer.
func (w contextTB) Context() context.Context { return w.ctx }

// runLives runs one life after the other until the course is over. The play starts when the first life is ready.
func (w *environment) runLives() {
	// The play must also start if the first life dies before it is ready.
	defer close(w.ended)
	var opened sync.Once
	open := func() { opened.Do(func() { close(w.operatorStarted) }) }
	defer open()
	for falls := 0; ; {
		l := w.startLife()
		// Wait until the life is ready, or ends before.
		select {
		case <-l.ready:
			open()
		case <-l.killed:
		case <-l.runner.Ended():
		case <-w.stopping:
		}
		// Wait until the life ends.
		select {
		case <-l.killed:
		case <-l.runner.Ended():
			if falls++; !w.recordExit(l, falls) {
				return
			}
		case <-w.stopping:
			return
		}
		open()
		if w.isExhausted() {
			return
		}
		// A restarted process needs some time, as in a cluster.
		select {
		case <-w.stopping:
			return
		case <-time.After(restartDelay):
		}
	}
}

// recordExit records that the operator ended without being killed, and reports whether to restart it. On a course with
// troubles, it may end a few times.
func (w *environment) recordExit(l *Life, falls int) bool {
	err := l.runner.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead {
		return true
	}
	w.markDead(l, fmt.Sprintf("has ended by itself: %v", err))
	if len(w.run.course) > 0 && falls < maxExits {
		return true
	}
	w.run.addViolation(Broken, "", fmt.Sprintf("the operator has ended by itself: %v", err))
	return false
}

var _ http.RoundTripper = (*Life)(nil)

package explorer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// observeAttempt records an attempt of this life. The returned function records its end, which is a point where the
// life can be cut.
func (l *Life) observeAttempt(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
	// The operator can call handlers before the world has its runner, and a cut needs the runner.
	<-l.started
	a := l.beginAttempt(call)
	return context.WithValue(ctx, attemptKey{}, a), func(outcome string, err error) { l.endAttempt(a, outcome, err) }
}

// beginAttempt records the start of an attempt. Attempts of a dead life are not recorded: handlers may run on after the
// kill, as their goroutines cannot be stopped.
func (l *Life) beginAttempt(call *handlers.Invocation) *attempt {
	w := l.environment
	w.mu.Lock()
	defer w.mu.Unlock()
	// The names are guarded by the lock, too.
	a := newAttempt(call, &w.names, l.number)
	if a.start = w.elapsedTime(); l.dead {
		return a
	}
	if a.handlesChange() {
		// A call for a change restarts the wait for the end of the play.
		w.lastActivity = time.Now()
	}
	// Active attempts keep the world from becoming idle.
	w.activeAttempts[a] = true
	w.run.attempts = append(w.run.attempts, a)
	w.run.noteAt(a.start, fmt.Sprintf("life %d", l.number), a.String()+" begins")
	return a
}

// endAttempt records the end of an attempt.
func (l *Life) endAttempt(a *attempt, outcome string, err error) {
	w := l.environment
	w.mu.Lock()
	if delete(w.activeAttempts, a); l.dead {
		w.mu.Unlock()
		return
	}
	a.end, a.done, a.outcome, a.err = w.elapsedTime(), true, outcome, err
	text := a.String() + ": " + outcome
	if err != nil {
		text += ": " + err.Error()
	}
	w.run.noteAt(a.end, fmt.Sprintf("life %d", l.number), text)
	if a.handlesChange() {
		w.lastActivity = time.Now()
	} else {
		w.lastBackgroundEnd = time.Now()
	}
	w.mu.Unlock()
	// The lock is released before, because reaching a point takes it.
	if a.object != "" && a.family != handlers.Watching {
		_ = l.reachPoint(point{place: "at-" + w.nextPlace("return", courseLabel(a.handler+"-for-"+a.object))})
	}
}

// newAttempt converts a call of the engine to an attempt.
func newAttempt(call *handlers.Invocation, names *names, life int) *attempt {
	h := call.Handler
	a := &attempt{
		change: change{handler: h.ID, reason: h.Activity}, family: h.Family, lifeNumber: life, retry: call.Retry,
	}
	// Each start of the operator resumes all objects, so these calls are not repetitions.
	if h.Initial {
		a.life = life
	}
	// Startup and cleanup activities are not about an object.
	if call.Cause == nil {
		return a
	}
	a.object = names.labelOf(&unstructured.Unstructured{Object: call.Cause.Body()})
	switch {
	case call.Admission != nil:
		a.reason = call.Admission.Operation
	case call.Cause.Reason != "":
		a.reason = string(call.Cause.Reason)
	default:
		a.reason = call.Cause.EventType
	}
	a.diff, a.essence = fmt.Sprint(call.Cause.Diff), fmt.Sprint(call.Cause.New)
	return a
}

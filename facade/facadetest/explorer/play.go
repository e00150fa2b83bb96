package explorer

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxSettleTime limits the wait for an idle scenario.
const maxSettleTime = 200 * idleTime

// Play acts as the users of the cluster in a scenario.
type Play struct {
	// Client is the client of the users. Its requests are not disturbed.
	Client client.Client
	// T is the test of this course. Its failures are reported with the name of the course.
	T testing.TB

	environment *environment
}

// Context returns the context of the course.
func (p *Play) Context() context.Context { return p.T.Context() }

// Create creates the objects one after the other.
func (p *Play) Create(objects ...client.Object) {
	for _, object := range objects {
		if err := p.retryWhileDown(func() error { return p.Client.Create(p.Context(), object) }); err != nil {
			p.T.Fatalf("creating %s: %v", objectName(object), err)
		}
	}
}

// Edit reads an object into the argument, calls change, and updates the object. It repeats that after a conflict.
func (p *Play) Edit(object client.Object, change func()) {
	for {
		if err := p.Client.Get(p.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			p.T.Fatalf("reading %s: %v", objectName(object), err)
		}
		change()
		err := p.retryWhileDown(func() error { return p.Client.Update(p.Context(), object) })
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			p.T.Fatalf("editing %s: %v", objectName(object), err)
		}
	}
}

// Delete deletes the objects, but does not wait until they are gone: see [Play.Settle].
func (p *Play) Delete(objects ...client.Object) {
	for _, object := range objects {
		if err := p.retryWhileDown(func() error { return p.Client.Delete(p.Context(), object) }); err != nil {
			p.T.Fatalf("deleting %s: %v", objectName(object), err)
		}
	}
}

// retryWhileDown repeats a request as long as it fails because the operator's admission webhook does not answer, up to
// a minute. A killed operator does not serve webhooks until its restart.
func (p *Play) retryWhileDown(request func() error) error {
	for begun := time.Now(); ; time.Sleep(restartDelay) {
		err := request()
		down := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
		if !down || time.Since(begun) > time.Minute {
			return err
		}
	}
}

// objectName returns the type and the key of an object for messages.
func objectName(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}

// Sleep gives the operator the given virtual time to work.
func (p *Play) Sleep(d time.Duration) { time.Sleep(d) }

// Settle waits until the scenario is idle: nothing is written and no handler other than a daemon or a timer is called
// for 11 minutes. If it does not become idle, the course fails and the play ends.
func (p *Play) Settle() {
	w := p.environment
	begun := time.Now()
	for time.Since(begun) < maxSettleTime {
		rest := w.remainingIdleTime(begun)
		if rest == 0 {
			return
		}
		time.Sleep(min(rest, time.Minute))
	}
	w.mu.Lock()
	w.run.addViolation(Restless, "", fmt.Sprintf("something still happens after %s", maxSettleTime))
	w.mu.Unlock()
	runtime.Goexit() // the course continues without the rest of the play
}

// remainingIdleTime returns the remaining time without activity until the scenario is idle.
func (w *environment) remainingIdleTime(begun time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.activeAttempts {
		if a.handlesChange() {
			return idleTime
		}
	}
	// Activity before the call of Settle does not count, so that a scenario is observed for the full time.
	last := w.lastActivity
	if last.Before(begun) {
		last = begun
	}
	return max(0, idleTime-time.Since(last))
}

// noteWrite records a write of the operator as activity. Writes of daemons and timers do not count, because they
// continue forever.
func (w *environment) noteWrite() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.activeAttempts {
		if !a.handlesChange() {
			return
		}
	}
	// A timer's result is written a moment after the call has ended.
	if w.lastBackgroundEnd.IsZero() || time.Since(w.lastBackgroundEnd) > outcomeGrace {
		w.lastActivity = time.Now()
	}
}

// deleteCreated deletes the objects of the play in reverse order, and waits for each. An object that does not disappear
// is reported as leaked.
func (w *environment) deleteCreated(p *Play) {
	for i := len(w.run.createdObjects) - 1; i >= 0; i-- {
		one := w.run.createdObjects[i]
		// The play has deleted it already, or another object has its name.
		if w.storedState(one) == nil {
			continue
		}
		_ = w.client.Delete(p.Context(), one.object) // a refusal is visible, as the object remains
		p.Settle()
		if left := w.storedState(one); left != nil {
			w.mu.Lock()
			w.run.addViolation(Leaked, one.label,
				fmt.Sprintf("it was deleted, and is still there: %q hold it", left.GetFinalizers()))
			w.mu.Unlock()
		}
	}
}

package background

import (
	"cmp"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// stop asks the handler to stop by itself; after the cancellation backoff, it cancels the context; after the
// cancellation timeout, it abandons the handler. The caller holds the lock.
func (t *task) stop(reason Reason) {
	if was := t.reason; was != 0 {
		t.reason |= reason
		t.hasten(t.reason &^ was)
		return
	}
	t.reason = reason
	if !t.running {
		t.end()
		return
	}
	close(t.stopping)
	time.AfterFunc(t.settings().InstantExit, t.beginBackoff)
}

// hasten shortens the stages of stopping for another reason: an exiting or pausing operator waits for a shorter time.
// The caller holds the lock.
func (t *task) hasten(reason Reason) {
	switch tick := !t.background().Daemon; {
	case reason&Exiting != 0:
		if t.cancelDue || tick && t.reason&Pausing != 0 {
			t.cancelContext()
		}
	case reason&Pausing == 0 || !t.cancelDue: // the stages that are to come know of the reason
	case tick:
		time.AfterFunc(t.settings().PauseTimeout, t.whileRunning(t.cancelContext))
	default:
		t.cancelContext()
	}
}

// lapse has the task end at once: nothing of it can be written any more. The caller holds the lock.
func (t *task) lapse() {
	if t.stop(Pausing); t.reason&Cancelled == 0 {
		t.cancelContext()
	}
}

// whileRunning makes a function that takes the lock, and calls the next stage of stopping unless the task has ended.
func (t *task) whileRunning(stage func()) func() {
	return func() {
		t.object.mu.Lock()
		defer t.object.mu.Unlock()
		if t.running && !t.released {
			stage()
		}
	}
}

// beginBackoff begins the cancellation backoff, or cancels at once if there is none. The tick of a timer, which ends by
// itself, may go on in a pause.
func (t *task) beginBackoff() {
	t.whileRunning(func() {
		t.lingers = true
		t.object.logAwaited()
		backoff := t.background().CancelBackoff
		switch {
		case backoff > 0:
			t.reason |= Signalled
		case t.reason&Pausing != 0 && !t.background().Daemon:
			backoff = t.settings().PauseTimeout
		}
		if backoff <= t.settings().InstantExit {
			t.cancelContext()
			return
		}
		time.AfterFunc(backoff-t.settings().InstantExit, t.whileRunning(t.cancelContext))
	})()
}

// cancelContext cancels a daemon; a tick, which ends by itself, only if the operator exits or pauses. Then it waits for
// the cancellation timeout. The caller holds the lock.
func (t *task) cancelContext() {
	t.cancelDue = true
	operator := t.reason&(Exiting|Pausing) != 0
	timeout := t.background().CancelTimeout
	if t.background().Daemon || operator {
		t.reason |= Cancelled
		t.cancel(t.reason.Err())
	}
	switch {
	case timeout > 0:
		time.AfterFunc(timeout, t.whileRunning(t.abandon))
	case operator:
		time.AfterFunc(exitTimeout, t.whileRunning(t.abandon))
	default:
		time.AfterFunc(t.polling(), t.whileRunning(t.remind))
		time.AfterFunc(DefaultDeletionWait, t.whileRunning(t.giveWay))
	}
}

// giveWay lets the deletion handlers of the object be called, though the task has not ended. The caller holds the lock.
func (t *task) giveWay() {
	t.overdue = true
	if t.reason&Deleted != 0 && t.object.awaited {
		logging.Warn(t.log(), "Handler does not stop; calling the deletion handlers of its object beside it", "after",
			DefaultDeletionWait.String())
		t.requestReconcile()
	}
}

func (t *task) polling() time.Duration {
	return cmp.Or(t.background().CancelPolling, t.settings().CancelPolling)
}

// remind logs that the object waits for the handler. The caller holds the lock.
func (t *task) remind() {
	if t.reason&(Exiting|Pausing) != 0 {
		return // it is about to be abandoned
	}
	logging.Warn(t.log(), "Handler does not stop, and its object waits for it; a cancellation timeout would limit that",
		"reason", t.reason.String())
	time.AfterFunc(t.polling(), t.whileRunning(t.remind))
}

// abandon stops waiting for a handler that has not stopped in time. The caller holds the lock.
func (t *task) abandon() {
	t.reason |= Abandoned
	logging.Warn(t.log(), "Handler did not stop in time; abandoning it, though it may still be running",
		"reason", t.reason.String())
	t.stopWaiting()
	t.requestReconcile()
}

// stopWaiting counts the task as ended, once. The caller holds the lock.
func (t *task) stopWaiting() {
	if !t.released {
		t.released = true
		t.object.supervisor.running.Done()
	}
}

// Reason is a set of flags: why a handler has to stop, and which stages of stopping it has reached. Kopf:
// DaemonStoppingReason of stoppers.
type Reason uint8

// The flags, with Kopf's names in String.
const (
	// Unmatched: the object does not match the filters any more.
	Unmatched Reason = 1 << iota
	// Deleted: the object is being deleted, or is gone.
	Deleted
	// Pausing and Exiting: the operator pauses or exits.
	Pausing
	Exiting
	// Signalled: the cancellation backoff has begun.
	Signalled
	// Cancelled: the context is cancelled.
	Cancelled
	// Abandoned: the supervisor does not wait for the handler any more.
	Abandoned
)

// names are Kopf's names of the flags, in their order.
var names = []string{
	"FILTERS_MISMATCH", "RESOURCE_DELETED", "OPERATOR_PAUSING", "OPERATOR_EXITING", "DAEMON_SIGNALLED",
	"DAEMON_CANCELLED", "DAEMON_ABANDONED",
}

// String joins the names by commas.
func (r Reason) String() string {
	var all []string
	for i, name := range names {
		if r&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}

// Err gives the reason as a cancellation cause; nil if there is none yet.
func (r Reason) Err() error {
	switch {
	case r&Deleted != 0:
		return execution.ErrDeleted
	case r&Exiting != 0:
		return execution.ErrExiting
	case r&Pausing != 0:
		return execution.ErrPaused
	case r&Unmatched != 0:
		return execution.ErrUnmatched
	default:
		return nil
	}
}

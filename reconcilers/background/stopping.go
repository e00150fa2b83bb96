package background

import (
	"cmp"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// stop asks the task to end: at its first word, by the handler's own insight; then, after the cancellation backoff, by
// its context; and at last without it. The lock is held.
func (t *task) stop(reason Reason) {
	if was := t.reason; was != 0 {
		t.reason |= reason
		if (was^t.reason)&(Exiting|Pausing) != 0 && t.pressing && t.running && !t.gone {
			t.cancelContext() // it was waited for without an end, and the operator does not
		}
		return
	}
	t.reason = reason
	if !t.running {
		t.end()
		return
	}
	close(t.stopping)
	time.AfterFunc(t.instantExit(), t.beginBackoff)
}

// whileRunning calls the next stage unless the task has ended.
func (t *task) whileRunning(stage func()) func() {
	return func() {
		t.object.mu.Lock()
		defer t.object.mu.Unlock()
		if t.running && !t.gone {
			stage()
		}
	}
}

// beginBackoff begins the cancellation backoff.
func (t *task) beginBackoff() {
	t.whileRunning(func() {
		backoff := t.background().CancelBackoff
		if backoff <= 0 {
			t.cancelContext()
			return
		}
		t.reason |= Signalled
		time.AfterFunc(backoff-t.instantExit(), t.whileRunning(t.cancelContext))
	})()
}

func (t *task) instantExit() time.Duration {
	settings, _ := t.object.supervisor.current()
	return cmp.Or(settings.InstantExit, DefaultInstantExit)
}

// cancelContext ends the context: that of a tick only if the operator does not go on, as ticks end by themselves. The
// lock is held.
func (t *task) cancelContext() {
	t.pressing = true
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
		time.AfterFunc(leftover, t.whileRunning(t.abandon))
	default:
		time.AfterFunc(t.polling(), t.whileRunning(t.remind))
	}
}

func (t *task) polling() time.Duration {
	settings, _ := t.object.supervisor.current()
	for _, polling := range []time.Duration{t.background().CancelPolling, settings.Polling} {
		if polling > 0 {
			return polling
		}
	}
	return DefaultPolling
}

// remind tells that the object waits. The lock is held.
func (t *task) remind() {
	if t.reason&(Exiting|Pausing) != 0 {
		return // it is about to be abandoned
	}
	t.log().Info("Handler does not end, and its object waits for it; a cancellation timeout would limit that",
		"reason", t.reason.String())
	time.AfterFunc(t.polling(), t.whileRunning(t.remind))
}

// abandon goes on without the task. The lock is held.
func (t *task) abandon() {
	t.reason |= Abandoned
	t.log().Info("Handler did not end in time; it is not waited for any more, though it may still be running",
		"reason", t.reason.String())
	t.stopWaiting()
	t.requestReconcile()
}

// stopWaiting ends the waiting for the task, once. The lock is held.
func (t *task) stopWaiting() {
	if !t.gone {
		t.gone = true
		t.object.supervisor.running.Done()
	}
}

// Reason is why a handler has to end, and how far that is: flags. Kopf: stoppers' DaemonStoppingReason.
type Reason uint8

// The flags, with Kopf's names in String.
const (
	// Unmatched: the object left the filters.
	Unmatched Reason = 1 << iota
	// Deleted: the object is being deleted, or is gone.
	Deleted
	// Pausing and Exiting: the operator does.
	Pausing
	Exiting
	// Signalled: the cancellation backoff is running.
	Signalled
	// Cancelled: the context has ended.
	Cancelled
	// Abandoned: nobody waits any more.
	Abandoned
)

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

// Err is the reason as a cancellation cause; nil if there is none yet.
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

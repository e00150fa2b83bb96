package background

import (
	"cmp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// requestStop requests the end of the task; repeated calls add reasons. It gives the handler time to stop by itself;
// after the cancellation backoff, it cancels the context; after the cancellation timeout, it abandons the handler. Only
// the first call starts these stages; others may shorten them. The caller holds the lock.
func (t *task) requestStop(reason StopReason) {
	if was := t.reason; was != 0 {
		t.reason |= reason
		t.shortenStages(t.reason &^ was)
		return
	}
	t.reason = reason
	// A waiting task has no function to stop.
	if !t.running {
		t.finishTask()
		return
	}
	close(t.stopping)
	// Most functions stop at once, without any further stage. Kopf: background.instant_exit_timeout.
	time.AfterFunc(t.presentSettings().InstantExit, t.beginBackoff)
}

// shortenStages shortens the stages for an additional reason: an exiting or pausing operator waits for a shorter time.
// The caller holds the lock.
func (t *task) shortenStages(reason StopReason) {
	switch tick := !t.backgroundOptions().Daemon; {
	case reason&Exiting != 0:
		if t.cancelDue || tick && t.reason&Pausing != 0 {
			t.cancelContext()
		}
	case reason&Pausing == 0 || !t.cancelDue: // a later stage takes the reason into account itself
	case tick:
		// A tick ends by itself, so it may use the time of the pause.
		time.AfterFunc(t.presentSettings().PauseTimeout, t.whileRunning(t.cancelContext))
	default:
		t.cancelContext()
	}
}

// endAtOnce ends the task at once, because it cannot write any more. The caller holds the lock.
func (t *task) endAtOnce() {
	if t.requestStop(Pausing); t.reason&Cancelled == 0 {
		t.cancelContext()
	}
}

// whileRunning returns a function that takes the lock and calls the next stage of stopping, unless the task has ended
// or was abandoned. It is for timers and goroutines, which do not hold the lock.
func (t *task) whileRunning(stage func()) func() {
	return func() {
		t.object.mu.Lock()
		defer t.object.mu.Unlock()
		if t.running && !t.released {
			stage()
		}
	}
}

// beginBackoff begins the cancellation backoff; without one, it cancels the context. The tick of a timer may continue
// in a pause, because it ends by itself.
func (t *task) beginBackoff() {
	t.whileRunning(func() {
		t.exceedsInstantExit = true
		t.object.logAwaited()
		backoff := t.backgroundOptions().CancelBackoff
		switch {
		case backoff > 0:
			t.reason |= Signalled
		case t.reason&Pausing != 0 && !t.backgroundOptions().Daemon:
			backoff = t.presentSettings().PauseTimeout
		}
		// The instant exit time has already passed, and counts as a part of the backoff.
		if backoff <= t.presentSettings().InstantExit {
			t.cancelContext()
			return
		}
		time.AfterFunc(backoff-t.presentSettings().InstantExit, t.whileRunning(t.cancelContext))
	})()
}

// cancelContext cancels the context of a daemon. It cancels the context of a tick only if the operator exits or pauses,
// as ticks end by themselves. Then the cancellation timeout begins. The caller holds the lock.
func (t *task) cancelContext() {
	t.cancelDue = true
	operator := t.reason&(Exiting|Pausing) != 0
	timeout := t.backgroundOptions().CancelTimeout
	if t.backgroundOptions().Daemon || operator {
		t.reason |= Cancelled
		t.cancel(t.reason.CancelCause())
	}
	switch {
	case timeout > 0:
		time.AfterFunc(timeout, t.whileRunning(t.abandonHandler))
	case operator:
		time.AfterFunc(exitTimeout, t.whileRunning(t.abandonHandler))
	// Without a timeout, the object waits for its handler: log it regularly. Deletion handlers do not wait for ever.
	default:
		time.AfterFunc(t.pollingInterval(), t.whileRunning(t.logReminder))
		time.AfterFunc(DefaultDeletionWait, t.whileRunning(t.releaseDeletion))
	}
}

// releaseDeletion lets the deletion handlers of the object run although the task has not ended. The caller holds the
// lock.
func (t *task) releaseDeletion() {
	t.overdue = true
	if t.reason&Deleted != 0 && t.object.delaysDeletion {
		logging.Warn(t.taskLogger(), "Handler does not stop; calling the deletion handlers of its object beside it",
			"after",
			DefaultDeletionWait.String())
		t.requestReconcile()
	}
}

// pollingInterval returns the interval of the log lines about a handler that does not stop.
func (t *task) pollingInterval() time.Duration {
	return cmp.Or(t.backgroundOptions().CancelPolling, t.presentSettings().CancelPolling)
}

// logReminder logs that the object waits for the handler, and repeats that. The caller holds the lock.
func (t *task) logReminder() {
	if t.reason&(Exiting|Pausing) != 0 {
		return // it is about to be abandoned
	}
	logging.Warn(t.taskLogger(),
		"Handler does not stop, and its object waits for it; a cancellation timeout would limit that",
		"reason", t.reason.String())
	time.AfterFunc(t.pollingInterval(), t.whileRunning(t.logReminder))
}

// abandonHandler stops waiting for a handler that has not stopped in time; its goroutine continues. The pass can then
// remove the finalizer. The caller holds the lock.
func (t *task) abandonHandler() {
	t.reason |= Abandoned
	logging.Warn(t.taskLogger(), "Handler did not stop in time; abandoning it, though it may still be running",
		"reason", t.reason.String())
	t.stopWaiting()
	t.requestReconcile()
}

// stopWaiting lets [Supervisor.StopAndWait] continue without the task. It has an effect once. The caller holds the
// lock.
func (t *task) stopWaiting() {
	if !t.released {
		t.released = true
		t.object.supervisor.running.Done()
	}
}

// logAwaited logs once that deletion handlers wait for tasks that did not stop at once. The caller holds the lock.
func (o *objectTasks) logAwaited() {
	// Tasks that stop at once are not worth a log line: only those that linger are named.
	var ids []string
	for _, t := range o.list {
		if t.exceedsInstantExit && !t.released && !t.overdue {
			ids = append(ids, t.handlerID())
		}
	}
	if o.delaysDeletion && !o.isDelayLogged && len(ids) > 0 {
		o.isDelayLogged = true
		settings, _ := o.supervisor.currentSettings()
		logging.OfObject(settings.Log, o.key, o.uid).Info("Deletion handlers wait until daemons and timers of the "+
			"object have ended", "handlers", ids)
	}
}

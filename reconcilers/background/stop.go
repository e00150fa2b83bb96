package background

import (
	"cmp"
	"time"
)

// stop asks the task to end: at its first word, by the handler's own insight; then, after the cancellation backoff, by
// its context; and at last without it. The lock is held.
func (k *task) stop(reason Reason) {
	if was := k.reason; was != 0 {
		k.reason |= reason
		if (was^k.reason)&(Exiting|Pausing) != 0 && k.pressing && k.running && !k.gone {
			k.interrupt() // it was waited for without an end, and the operator does not
		}
		return
	}
	k.reason = reason
	if !k.running {
		k.leave()
		return
	}
	close(k.stopping)
	time.AfterFunc(k.instantExit(), k.signal)
}

// pressed calls the next stage unless the task has ended.
func (k *task) pressed(stage func()) func() {
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.running && !k.gone {
			stage()
		}
	}
}

// signal begins the cancellation backoff.
func (k *task) signal() {
	k.pressed(func() {
		backoff := k.handler.Description.Background.CancelBackoff
		if backoff <= 0 {
			k.interrupt()
			return
		}
		k.reason |= Signalled
		time.AfterFunc(backoff-k.instantExit(), k.pressed(k.interrupt))
	})()
}

func (k *task) instantExit() time.Duration {
	settings, _ := k.crew.current()
	return cmp.Or(settings.InstantExit, DefaultInstantExit)
}

// interrupt ends the context: that of a tick only if the operator does not go on, as ticks end by themselves. The lock
// is held.
func (k *task) interrupt() {
	k.pressing = true
	operator := k.reason&(Exiting|Pausing) != 0
	timeout := k.handler.Description.Background.CancelTimeout
	if k.handler.Description.Background.Daemon || operator {
		k.reason |= Cancelled
		k.cancel(k.reason.Err())
	}
	switch {
	case timeout > 0:
		time.AfterFunc(timeout, k.pressed(k.abandon))
	case operator:
		time.AfterFunc(leftover, k.pressed(k.abandon))
	default:
		time.AfterFunc(k.polling(), k.pressed(k.remind))
	}
}

func (k *task) polling() time.Duration {
	settings, _ := k.crew.current()
	for _, polling := range []time.Duration{k.handler.Description.Background.CancelPolling, settings.Polling} {
		if polling > 0 {
			return polling
		}
	}
	return DefaultPolling
}

// remind tells that the object waits. The lock is held.
func (k *task) remind() {
	if k.reason&(Exiting|Pausing) != 0 {
		return // it is about to be abandoned
	}
	settings, _ := k.crew.current()
	settings.Log.Info("A handler does not end, and its object waits for it; a cancellation timeout would limit that",
		"namespace", k.key.Namespace, "name", k.key.Name, "handler", k.handler.Description.ID,
		"reason", k.reason.String())
	time.AfterFunc(k.polling(), k.pressed(k.remind))
}

// abandon goes on without the task. The lock is held.
func (k *task) abandon() {
	settings, _ := k.crew.current()
	k.reason |= Abandoned
	settings.Log.Info("A handler has not ended in time, and is abandoned: it may still be running",
		"namespace", k.key.Namespace, "name", k.key.Name, "handler", k.handler.Description.ID,
		"reason", k.reason.String())
	k.release()
	k.notify()
}

// release ends the waiting for the task, once. The lock is held.
func (k *task) release() {
	if !k.gone {
		k.gone = true
		k.crew.running.Done()
	}
}

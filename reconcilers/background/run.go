package background

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// begin makes ready for a run of the function. The lock is held.
func (k *task) begin() context.Context {
	ctx, cancel := context.WithCancelCause(k.logged(context.Background()))
	k.running, k.stopping, k.cancel, k.gone, k.pressing = true, make(chan struct{}), cancel, false, false
	k.writing = make(chan struct{}, 1)
	k.crew.running.Add(1)
	return ctx
}

// end is the counterpart of begin. The lock is held.
func (k *task) end() {
	k.running = false
	k.cancel(nil)
	k.release()
}

// launch runs a daemon as soon as there is room. The lock is held.
func (k *task) launch() {
	if waits, after := k.crew.Daemons.Go(k.daemon); waits {
		settings, _ := k.crew.current()
		settings.Log.Info("A daemon waits for others to end: as many as may run do", "namespace", k.key.Namespace,
			"name", k.key.Name,
			"handler", k.handler.Description.ID, "limit", k.crew.Daemons.Most, "ahead", after)
	}
}

// daemon is the life of a daemon.
func (k *task) daemon() {
	k.mu.Lock()
	if k.reason != 0 { // it was stopped while it waited for its turn, and is gone
		k.mu.Unlock()
		return
	}
	ctx := k.begin()
	delay := k.initialDelay()
	k.mu.Unlock()
	k.attempts(ctx, delay)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end()
	k.leave()
}

// attempts calls the function until it has returned for good, or has to end.
func (k *task) attempts(ctx context.Context, delay time.Duration) {
	if !k.sleep(delay) {
		return
	}
	k.started = time.Now()
	for {
		o := k.attempt(ctx)
		switch {
		case k.isStopping() || o.Final:
			return
		case !o.Aborted:
			k.retries++
		}
		if !k.sleep(delayOf(o)) {
			return
		}
	}
}

// delayOf is how long to wait for the next attempt. What could not be called for the object's sake is tried now and
// then.
func delayOf(o execution.Outcome) time.Duration {
	switch {
	case o.Delay != nil:
		return *o.Delay
	case o.Blocked:
		return execution.DefaultBackoff
	default:
		return 0
	}
}

// sleep is false if the task has to end.
func (k *task) sleep(delay time.Duration) bool {
	if delay <= 0 {
		return !k.isStopping()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-k.stopping:
		return false
	case <-timer.C:
		return true
	}
}

func (k *task) isStopping() bool {
	select {
	case <-k.stopping:
		return true
	default:
		return false
	}
}

// fault tells of a write that failed.
func (k *task) fault(ctx context.Context, err error, what string) {
	logf.FromContext(ctx).Error(err, what, "handler", k.handler.Description.ID)
}

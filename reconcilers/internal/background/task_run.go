package background

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// beginRun prepares a run: the whole life of a daemon, or one tick. It returns false if no run may begin; the task is
// stopped then. The caller holds the lock.
func (t *task) beginRun() (context.Context, bool) {
	settings := t.presentSettings()
	switch {
	case t.reason != 0: // Supervisor stopped and removed the task while it waited for its turn
		return nil, false
	// The gate counts the run from here on. A closed gate stops the task; it is started again after the pause.
	case settings.Gate != nil && !settings.Gate.Enter():
		t.requestStop(Pausing)
		return nil, false
	}
	t.gate = settings.Gate
	ctx, cancel := context.WithCancelCause(t.withLogger(sharding.WithRange(context.Background(), settings.Range)))
	t.running, t.stopping, t.cancel, t.released, t.cancelDue = true, make(chan struct{}), cancel, false, false
	t.exceedsInstantExit, t.overdue = false, false // of the former tick
	// A semaphore for one write at a time: see [task.writeOnce].
	t.writeSemaphore = make(chan struct{}, 1)
	// Without the permission to write, the run must end at once.
	if settings.Permission != nil {
		t.unsubscribe = context.AfterFunc(settings.Permission, t.whileRunning(t.endAtOnce))
	}
	// [Supervisor.StopAndWait] waits for the run.
	t.object.supervisor.running.Add(1)
	return ctx, true
}

// endRun releases everything that beginRun has acquired. The caller holds the lock.
func (t *task) endRun() {
	t.running = false
	// The permission no longer matters to this task.
	if t.unsubscribe != nil {
		t.unsubscribe()
	}
	t.cancel(nil)
	t.stopWaiting()
	if t.gate != nil {
		t.gate.Leave()
	}
}

// startDaemon runs a daemon as soon as the limit of daemons allows it. The caller holds the lock.
func (t *task) startDaemon() {
	if waits, ahead := t.object.supervisor.Daemons.Go(t.runDaemon); waits {
		t.taskLogger().Info("Daemon waits for others to end: the limit of running daemons is reached",
			"limit", t.object.supervisor.Daemons.Max, "ahead", ahead)
	}
}

// runDaemon runs a daemon from its initial delay to its end. It blocks until the function has returned.
func (t *task) runDaemon() {
	t.object.mu.Lock()
	ctx, begun := t.beginRun()
	// The task was stopped while it waited for the limit.
	if !begun {
		t.object.mu.Unlock()
		return
	}
	delay := t.initialDelay()
	t.object.mu.Unlock()
	t.repeatAttempts(ctx, delay)
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	t.endRun()
	t.finishTask()
}

// repeatAttempts calls the function again after each failed attempt, until the handler is finished or must stop.
func (t *task) repeatAttempts(ctx context.Context, delay time.Duration) {
	if !t.sleepFor(delay) || t.stopIfPaused() {
		return
	}
	// The initial delay is not a part of the handler's timeout.
	t.started = time.Now()
	for {
		o := t.callFunction(ctx)
		switch {
		case t.isStopping() || o.Final:
			return
		case !o.Aborted:
			t.retries++
			t.trace = o.Trace
		}
		if !t.sleepFor(delayOf(o)) || t.stopIfPaused() {
			return
		}
	}
}

// stopIfPaused reports whether no further attempt may begin because the gate is closed. It stops the task then, as the
// supervisor may not have noticed the pause yet.
func (t *task) stopIfPaused() bool {
	if t.gate == nil || t.gate.Open() {
		return false
	}
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	t.requestStop(Pausing)
	return true
}

// delayOf returns the delay before the next attempt. A function that cannot decode its object waits for the default
// backoff, because a change of the object does not wake it.
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

// sleepFor waits for the delay. It returns false at once if the task must stop.
func (t *task) sleepFor(delay time.Duration) bool {
	if delay <= 0 {
		return !t.isStopping()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-t.stopping:
		return false
	case <-timer.C:
		return true
	}
}

// isStopping reports whether the task must stop. It does not need the lock.
func (t *task) isStopping() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

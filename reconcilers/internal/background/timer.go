package background

import (
	"math/rand/v2"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// fireTimer begins a tick if it is due. Requests in the queue cannot be removed or postponed, so obsolete ones are
// ignored, and early ones are renewed.
func (o *objectTasks) fireTimer(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.findTask(id)
	now := time.Now()
	switch {
	case t == nil || t.due.IsZero(): // the task has ended, or is running a tick already
		return
	case t.nextTick().After(now):
		t.enqueueTick(now)
		return
	}
	t.due = time.Time{} // ignore further requests for this tick
	t.object.supervisor.Ticks.Go(t.runTick)
}

// nextTick returns the time of the next tick, which is not before the end of the idle time. The caller holds the lock.
func (t *task) nextTick() time.Time {
	if rested := t.object.lastChange.Add(t.backgroundOptions().Idle); rested.After(t.due) {
		return rested
	}
	return t.due
}

// enqueueTick requests the next tick. Without a controller, it does nothing, as the task is about to stop. The caller
// holds the lock.
func (t *task) enqueueTick(now time.Time) {
	if _, service := t.object.supervisor.currentSettings(); service != nil {
		service.Enqueue(t.object.key, t.handlerID(), max(0, t.nextTick().Sub(now)))
	}
}

// runTick calls the function once and schedules the next tick. It runs on a goroutine of the Ticks limit.
func (t *task) runTick() {
	t.object.mu.Lock()
	ctx, begun := t.beginRun()
	t.object.mu.Unlock()
	if !begun {
		return // the task has been stopped
	}
	called := time.Now()
	o := t.callFunction(ctx)
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	t.endRun()
	if t.reason != 0 {
		t.finishTask()
		return
	}
	t.scheduleTick(o, called, time.Now())
}

// scheduleTick decides when the next tick is due, or ends the task. The caller holds the lock.
func (t *task) scheduleTick(o execution.Outcome, called, now time.Time) {
	b := t.backgroundOptions()
	switch {
	case !o.Final:
		// A failed attempt is retried after its delay, which replaces the interval.
		if !o.Aborted {
			t.retries++
			t.trace = o.Trace
		}
		t.due = now.Add(delayOf(o))
	case o.Err != nil, b.Interval <= 0 && b.Idle <= 0:
		// A timer ends after a permanent error. Kopf continues by the schedule. A timer without an interval ticks once.
		t.finishTask()
		return
	case b.Interval <= 0:
		t.awaitChange(called, now)
		return
	default:
		t.resetRun(now.Add(delayToTick(b, called, now)))
	}
	t.enqueueTick(now)
}

// resetRun begins a new run with the next tick, without the former retries.
func (t *task) resetRun(due time.Time) {
	t.due, t.started, t.retries, t.trace = due, due, 0, ""
}

// awaitChange makes a timer without an interval wait for the next change of the essence.
func (t *task) awaitChange(called, now time.Time) {
	t.due, t.lastTickEnd = time.Time{}, now
	// A change during the call counts, too.
	if t.object.lastChange.After(called) {
		t.wakeIdle()
	}
}

// wakeIdle schedules a timer without an interval after a change. Kopf checks for changes once in each idle time, so the
// next tick is at the end of such a step. The caller holds the lock.
func (t *task) wakeIdle() {
	if t.lastTickEnd.IsZero() {
		return // the timer is not waiting for a change
	}
	idle := t.backgroundOptions().Idle
	since := max(0, t.object.lastChange.Sub(t.lastTickEnd))
	t.resetRun(t.lastTickEnd.Add(since + (idle-since%idle)%idle))
	t.lastTickEnd = time.Time{}
	t.enqueueTick(time.Now())
}

// delayToTick returns the time until the next tick of a timer with an interval. Sharp ticks are on a grid from the
// start of the last tick. The jitter spreads the ticks of many objects.
func delayToTick(b *handlers.BackgroundOptions, called, now time.Time) time.Duration {
	interval := b.Interval
	if b.Sharp {
		interval -= now.Sub(called) % b.Interval
	}
	return interval + time.Duration(rand.Float64()*b.Jitter*float64(b.Interval))
}

package background

import (
	"math/rand/v2"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// fire begins a tick if it is due; the queue can neither forget nor postpone, so that is to be seen here.
func (o *objectTasks) fire(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.task(id)
	now := time.Now()
	switch {
	case t == nil || t.running || t.reason != 0 || t.due.IsZero():
		return
	case t.next().After(now):
		t.enqueue(now)
		return
	}
	t.due = time.Time{} // once is enough
	t.object.supervisor.Ticks.Go(t.tick)
}

// next is when the tick is due, idling included. The lock is held.
func (t *task) next() time.Time {
	if idle := t.background().Idle; idle > 0 {
		if rested := t.object.reset.Add(idle); rested.After(t.due) {
			return rested
		}
	}
	return t.due
}

// enqueue has the tick looked at when it is due. The lock is held.
func (t *task) enqueue(now time.Time) {
	if _, service := t.object.supervisor.current(); service != nil {
		service.Enqueue(t.object.key, t.id(), max(0, t.next().Sub(now)))
	}
}

// tick is one call, with what follows from it.
func (t *task) tick() {
	t.object.mu.Lock()
	if t.reason != 0 { // it was stopped while it waited for its turn
		t.object.mu.Unlock()
		return
	}
	ctx := t.beginRun()
	t.object.mu.Unlock()
	called := time.Now()
	o := t.attempt(ctx)
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	t.endRun()
	if t.reason != 0 {
		t.end()
		return
	}
	t.schedule(o, called, time.Now())
}

// schedule decides on the next tick. The lock is held.
func (t *task) schedule(o execution.Outcome, called, now time.Time) {
	b := t.background()
	switch {
	case !o.Final:
		if !o.Aborted {
			t.retries++
		}
		t.due = now.Add(delayOf(o))
	case o.Err != nil, b.Interval <= 0 && b.Idle <= 0:
		t.end() // for good
		return
	case b.Interval <= 0:
		t.awaitChange(called, now)
		return
	default:
		t.startAnew(now.Add(pause(b, called, now)))
	}
	t.enqueue(now)
}

// startAnew begins the account of another run.
func (t *task) startAnew(due time.Time) { t.due, t.started, t.retries = due, due, 0 }

// awaitChange lets a timer without an interval wait for the next change that matters.
func (t *task) awaitChange(called, now time.Time) {
	t.due, t.ended = time.Time{}, now
	if t.object.reset.After(called) {
		t.wakeIdle()
	}
}

// wakeIdle schedules a timer without an interval after a change: it looks for that from time to time, in Kopf, so its
// run is taken to begin then. The lock is held.
func (t *task) wakeIdle() {
	idle := t.background().Idle
	if t.background().Daemon || t.running || !t.due.IsZero() || t.ended.IsZero() || idle <= 0 {
		return
	}
	since := max(0, t.object.reset.Sub(t.ended))
	t.startAnew(t.ended.Add(since + (idle-since%idle)%idle))
	t.ended = time.Time{}
	t.enqueue(time.Now())
}

// pause is how long there is to the next tick.
func pause(b *handlers.Background, called, now time.Time) time.Duration {
	interval := b.Interval
	if b.Sharp {
		interval -= now.Sub(called) % b.Interval
	}
	if b.Jitter > 0 {
		interval += time.Duration(rand.Float64() * b.Jitter * float64(b.Interval))
	}
	return interval
}

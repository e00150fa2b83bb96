package background

import (
	"math/rand/v2"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// fire begins a tick if it is due; the queue can neither forget nor postpone, so that is to be seen here.
func (t *tasks) fire(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.task(id)
	now := time.Now()
	switch {
	case k == nil || k.running || k.reason != 0 || k.due.IsZero():
		return
	case k.next().After(now):
		k.enqueue(now)
		return
	}
	k.due = time.Time{} // once is enough
	k.crew.Ticks.Go(k.tick)
}

// next is when the tick is due, idling included. The lock is held.
func (k *task) next() time.Time {
	if idle := k.handler.Description.Background.Idle; idle > 0 {
		if rested := k.reset.Add(idle); rested.After(k.due) {
			return rested
		}
	}
	return k.due
}

// enqueue has the tick looked at when it is due. The lock is held.
func (k *task) enqueue(now time.Time) {
	if _, service := k.crew.current(); service != nil {
		service.Enqueue(k.key, k.handler.Description.ID, max(0, k.next().Sub(now)))
	}
}

// tick is one call, with what follows from it.
func (k *task) tick() {
	k.mu.Lock()
	if k.reason != 0 { // it was stopped while it waited for its turn
		k.mu.Unlock()
		return
	}
	ctx := k.begin()
	k.mu.Unlock()
	called := time.Now()
	o := k.attempt(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end()
	if k.reason != 0 {
		k.leave()
		return
	}
	k.schedule(o, called, time.Now())
}

// schedule decides on the next tick. The lock is held.
func (k *task) schedule(o execution.Outcome, called, now time.Time) {
	b := k.handler.Description.Background
	switch {
	case !o.Final:
		if !o.Aborted {
			k.retries++
		}
		k.due = now.Add(delayOf(o))
	case o.Err != nil, b.Interval <= 0 && b.Idle <= 0:
		k.leave() // for good
		return
	case b.Interval <= 0:
		k.rest(called, now)
		return
	default:
		k.anew(now.Add(pause(b, called, now)))
	}
	k.enqueue(now)
}

// anew begins the account of another run.
func (k *task) anew(due time.Time) { k.due, k.started, k.retries = due, due, 0 }

// rest lets a timer without an interval wait for the next change that matters.
func (k *task) rest(called, now time.Time) {
	k.due, k.ended = time.Time{}, now
	if k.reset.After(called) {
		k.wakeIdle()
	}
}

// wakeIdle schedules a timer without an interval after a change: it looks for that from time to time, in Kopf, so its
// run is taken to begin then. The lock is held.
func (k *task) wakeIdle() {
	idle := k.handler.Description.Background.Idle
	if k.handler.Description.Background.Daemon || k.running || !k.due.IsZero() || k.ended.IsZero() || idle <= 0 {
		return
	}
	since := max(0, k.reset.Sub(k.ended))
	k.anew(k.ended.Add(since + (idle-since%idle)%idle))
	k.ended = time.Time{}
	k.enqueue(time.Now())
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

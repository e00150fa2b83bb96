package sharding

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// latency is the longest time for one way of a request.
const latency = 20 * time.Millisecond

var errNoAnswer = errors.New("no answer")

// after calls a function of the process. A process that stands still calls it when it continues.
func (r *simulatedReplica) after(delay time.Duration, do func()) {
	r.s.after(delay, func() { r.call(do) })
}

func (r *simulatedReplica) call(do func()) {
	switch {
	case r.isDead:
	case r.s.now.Before(r.frozenUntil):
		r.s.after(r.frozenUntil.Sub(r.s.now)+r.s.delay(time.Millisecond), func() { r.call(do) })
	default:
		do()
	}
}

// request sends something to the API server, and passes whether there is an answer.
func (r *simulatedReplica) request(apply func(), answer func(answered bool)) {
	s, limit := r.s, latency
	if s.now.Before(r.slowUntil) {
		limit = requestTimeout
	}
	there, back := s.delay(limit), s.delay(limit)
	if there+back > requestTimeout {
		s.after(there, apply)
		r.after(requestTimeout, func() { answer(false) })
		return
	}
	s.after(there, func() {
		if s.now.Before(r.cutUntil) {
			r.after(requestTimeout, func() { answer(false) })
			return
		}
		apply()
		if s.now.Before(r.losesUntil) {
			r.after(requestTimeout, func() { answer(false) })
			return
		}
		r.after(back, func() { answer(true) })
	})
}

// tick is the tick of a Sharding in single events, so that the process can stand still between any two of them.
func (r *simulatedReplica) tick() {
	var v view
	requested := r.local()
	r.request(func() {
		v = r.s.store.view(len(r.gates))
		r.s.lists++
		r.s.listedBytes += len(v.ranges)*rangeBytes + len(v.replicas)*replicaBytes
	}, func(answered bool) {
		if !answered {
			r.core.checkLapse(r.local())
			r.finish(false)
			return
		}
		v.requested, v.received = requested, r.local()
		r.after(r.s.delay(time.Millisecond), func() {
			r.core.observe(v)
			r.proceed(requested.Add(batchTime), false)
		})
	})
}

// proceed makes the next batch of writes.
func (r *simulatedReplica) proceed(end time.Time, again bool) {
	batch := r.core.plan(r.local())
	if len(batch) == 0 {
		r.finish(again)
		return
	}
	r.after(r.s.delay(time.Millisecond), func() { r.execute(batch, end, again, true) })
}

// execute makes the writes of a batch, some at a time.
func (r *simulatedReplica) execute(batch []write, end time.Time, again, isFirst bool) {
	if len(batch) == 0 || !isFirst && !r.local().Before(end) {
		r.core.settle(r.local())
		r.proceed(end, again)
		return
	}
	chunk := batch[:min(parallelWrites, len(batch))]
	var results []func()
	for _, w := range chunk {
		sent := r.local()
		var result *lease
		var err error
		r.request(func() {
			r.s.writes++
			result, err = r.s.store.apply(w, r.core.names)
		}, func(answered bool) {
			if !answered {
				result, err = nil, errNoAnswer
			}
			results = append(results, func() {
				again = again || w.kind == acquireRange && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
				r.core.confirm(w, sent, r.local(), result, err)
			})
			if len(results) < len(chunk) {
				return
			}
			for _, apply := range results {
				apply()
			}
			r.execute(batch[len(chunk):], end, again, false)
		})
	}
}

// finish ends a tick. A process that ends removes its Lease when it has left all ranges.
func (r *simulatedReplica) finish(again bool) {
	delay := r.core.nextDelay(r.local(), again, r.s.delay)
	if !r.isEnding || r.core.holdsAny() {
		r.after(delay, r.tick)
		return
	}
	r.remove()
}

// remove is the end of a process: it removes its Lease, lists the others, and releases the layout if it is the last.
func (r *simulatedReplica) remove() {
	if r.isDead = r.core.self == nil; r.isDead {
		return
	}
	w := write{kind: removeLease, before: r.core.self, name: r.core.own}
	r.request(func() { _, _ = r.s.store.apply(w, r.core.names) }, func(answered bool) {
		if r.isDead = !answered; r.isDead {
			return
		}
		requested := r.local()
		var v view
		r.request(func() { v = r.s.store.view(len(r.gates)) }, func(answered bool) {
			if r.isDead = !answered; r.isDead {
				return
			}
			v.requested, v.received, r.core.self = requested, r.local(), nil
			r.core.observe(v)
			if w, isLast := r.core.planReleasedLayout(); isLast {
				r.request(func() { _, _ = r.s.store.apply(w, r.core.names) }, func(bool) { r.isDead = true })
			}
		})
	})
}

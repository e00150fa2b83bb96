package reconcilers

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// opening is the gate from one of its openings to the end of that. What serves in one of them may not have heard of its
// end yet when the gate is open again: nothing begins by what it knows, as others may have acted in between.
type opening struct {
	gate   *Gate
	number int      // of the gate
	whole  *opening // of the operator's gate, if the gate is that of a namespace
}

var _ kind.Gate = opening{}

// Open tells whether anything may begin.
func (o opening) Open() bool {
	if o.whole != nil && !o.whole.Open() {
		return false
	}
	if o.gate == nil {
		return true
	}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	return o.open()
}

// open is Open for callers that hold the lock.
func (o opening) open() bool { return o.gate.open() && o.gate.number == o.number }

// Enter is that of the gate, and of the operator's.
func (o opening) Enter() bool {
	if o.whole != nil && !o.whole.Enter() {
		return false
	}
	if o.enter() {
		return true
	}
	if o.whole != nil {
		o.whole.Leave()
	}
	return false
}

func (o opening) enter() bool {
	if o.gate == nil {
		return true
	}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	return o.open() && o.gate.begin()
}

// Leave is that of the gates, open or not.
func (o opening) Leave() {
	o.gate.Leave()
	if o.whole != nil {
		o.whole.Leave()
	}
}

// in serves a namespace whenever its own gate is open within the opening.
func (o opening) in(
	ctx context.Context, namespace string, serve func(context.Context, kind.Gate), paused func(context.Context),
) {
	o.gate.In(namespace).pass(ctx, func(ctx context.Context, now opening) {
		now.whole = &o
		serve(ctx, now)
	}, paused)
}

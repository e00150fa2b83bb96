package reconcilers

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// opening is one period in which the gate is open. Controllers of an ended period may not have noticed its end when the
// gate opens again. They must not start new work from their stale caches, because other processes may have acted in
// between. So the opening counts as closed as soon as the number of the gate has changed.
type opening struct {
	gate            *Gate
	changeCount     int      // number of the gate in this period
	takeovers       int      // how many takeovers the gate has noted before
	operatorOpening *opening // opening of the operator's gate, if gate is that of a namespace
}

var _ kind.WorkGate = opening{}

// Open reports whether new work may start in this opening.
func (o opening) Open() bool {
	if o.operatorOpening != nil && !o.operatorOpening.Open() {
		return false
	}
	if o.gate == nil {
		return true
	}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	return o.isOpenLocked()
}

// isOpenLocked is Open for the own gate alone. The caller holds its lock.
func (o opening) isOpenLocked() bool {
	return o.gate.isOpenLocked() && o.gate.changeCount == o.changeCount
}

// Enter counts the start of work with the gate and the operator's gate. Both must be open, otherwise neither counts.
func (o opening) Enter() bool {
	if o.operatorOpening != nil && !o.operatorOpening.Enter() {
		return false
	}
	if o.enterOwnGate() {
		return true
	}
	// Take back the count of the operator's gate.
	if o.operatorOpening != nil {
		o.operatorOpening.Leave()
	}
	return false
}

// enterOwnGate is Enter for the own gate alone. Checking and counting need one lock: after Set(true), no work may
// start.
func (o opening) enterOwnGate() bool {
	if o.gate == nil {
		return true
	}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	return o.isOpenLocked() && o.gate.countStart()
}

// Leave counts the end of work with both gates, open or not.
func (o opening) Leave() {
	o.gate.Leave()
	if o.operatorOpening != nil {
		o.operatorOpening.Leave()
	}
}

// serveNamespace serves a namespace whenever its own gate is open within this opening, and calls paused while it is
// closed.
func (o opening) serveNamespace(
	ctx context.Context, namespace string, serve func(context.Context, kind.WorkGate), paused func(context.Context),
) {
	o.gate.NamespaceGate(namespace).followOpenings(ctx, func(ctx context.Context, now opening) {
		now.operatorOpening = &o
		serve(ctx, now)
	}, paused)
}

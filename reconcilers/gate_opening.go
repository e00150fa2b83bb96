package reconcilers

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

// opening is one period in which the gate is open. Controllers of an ended period may not have noticed its end when the
// gate opens again. They must not start new work from their stale caches, because other processes may have acted in
// between. So the opening counts as closed as soon as the number of the gate has changed.
type opening struct {
	gate        *Gate
	changeCount int      // number of the gate in this period
	takeovers   int      // how many takeovers the gate has noted before
	outer       *opening // opening of the gate around it: of the operator, or of the namespace for a range
}

var _ kind.WorkGate = opening{}

// Open reports whether new work may start in this opening.
func (o opening) Open() bool {
	if o.outer != nil && !o.outer.Open() {
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

// Enter counts the start of work with the gate and those around it. All must be open, otherwise none counts.
func (o opening) Enter() bool {
	if o.outer != nil && !o.outer.Enter() {
		return false
	}
	if o.enterOwnGate() {
		return true
	}
	// Take back the counts of the gates around it.
	if o.outer != nil {
		o.outer.Leave()
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

// Leave counts the end of work with all gates, open or not.
func (o opening) Leave() {
	o.gate.Leave()
	if o.outer != nil {
		o.outer.Leave()
	}
}

// serveScope serves a scope whenever the gates of its namespace and its range are open within this opening. It calls
// one of the other functions while one of them is closed.
func (o opening) serveScope(
	ctx context.Context, scope memory.KindScope, serve controller.ServeScope,
	namespacePaused, rangePaused func(context.Context),
) {
	o.gate.NamespaceGate(scope.Namespace).followOpenings(ctx, func(ctx context.Context, inNamespace opening) {
		inNamespace.outer = &o
		if scope.Range.IsWhole() {
			serve(ctx, inNamespace, inNamespace.takeovers)
			return
		}
		o.gate.RangeGate(scope.Range.Index).followOpenings(ctx, func(ctx context.Context, inRange opening) {
			inRange.outer = &inNamespace
			serve(ctx, inRange, inRange.takeovers)
		}, rangePaused)
	}, namespacePaused)
}

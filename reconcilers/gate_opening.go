package reconcilers

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
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

// Enter counts the start of a pass over an object, of a daemon, or of a tick of a timer. It returns false and counts
// nothing if the gate is closed; otherwise, the caller must call Leave at the end.
func (g *Gate) Enter() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpenLocked() && g.countStart()
}

// countStart counts a start. The caller holds the lock.
func (g *Gate) countStart() bool {
	if g.busy == 0 {
		// The closed channel belongs to the former idle time: the next call of Idle makes another one.
		g.idle = nil
	}
	g.busy++
	return true
}

// Leave counts the end of a started piece of work.
func (g *Gate) Leave() {
	if g == nil {
		return
	}
	g.applyChange(func() {
		if g.busy--; g.busy > 0 {
			return
		}
		// AllowWritesUntil may have extended the permission while old work was still running. That work was the last
		// obstacle, so writes may be sent again.
		if g.isPermissionExpired = g.isPermissionExpired && hasPassed(g.permittedUntil); g.idle != nil {
			close(g.idle)
		}
	})
}

// Busy returns how many passes, daemons and ticks are running. A handler counts once with all of its sub-handlers, and
// counts until its outcome is written. While the gate is closed, the number only falls. A handler that continues after
// the end of its context counts until it returns.
func (g *Gate) Busy() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy
}

// Idle returns a channel that is closed when nothing is running, which may be the case already. Work that starts later
// does not open it again: call Idle for another channel.
func (g *Gate) Idle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
		if g.busy == 0 {
			close(g.idle)
		}
	}
	return g.idle
}

package reconcilers

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// Gate pauses an operator, for example while a peer of a higher priority is active. Nil and the zero value are open. If
// the operator must not act before a decision has been made, close the gate before the start.
//
// While the gate is closed, no objects are watched and no handlers are called; kinds and namespaces are still followed.
// Work that is running when the gate closes may finish within Options.PauseTimeout, and its outcome is written;
// background handlers are stopped at once. Without the permission to write, all work ends at once.
//
// There is one gate for the operator, one for each namespace with peering of its own, and one for each range of a
// sharded operator. An object is handled while the gates of all three are open.
type Gate struct {
	operatorGate *Gate // the operator's gate; nil in the operator's gate itself

	mu             sync.Mutex
	namespaceGates map[string]*Gate // gates of namespaces, made on demand and never removed
	rangeGates     map[int]*Gate    // gates of ranges, by index, made on demand and never removed
	closed         bool             // as set by Set
	permittedUntil time.Time        // end of the permission to write; zero means that it does not end
	// true after permittedUntil, and until all work that began before then has returned
	isPermissionExpired bool
	expiryTimer         *time.Timer // fires at permittedUntil
	// permission ends together with the permission to write; nil while no caller needs it.
	permission       context.Context //nolint:containedctx // only its end is of interest, and why
	cancelPermission context.CancelCauseFunc
	changed          chan struct{} // closed when the gate opens or closes; nil while no caller needs it
	changeCount      int           // counts those changes, so that a stale opening can be detected
	takeovers        int           // counts the calls of NoteTakeover
	busy             int           // running work, see Busy
	idle             chan struct{} // closed while busy is zero; nil while no caller needs it
}

// NamespaceGate returns the gate of one namespace, and makes it if necessary. It pauses the operator in that namespace
// only; the gate of the operator pauses all namespaces. Cluster-scoped objects do not have a gate of their own: In
// returns nil for the empty namespace.
func (g *Gate) NamespaceGate(namespace string) *Gate {
	if g == nil || namespace == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.namespaceGates == nil {
		g.namespaceGates = map[string]*Gate{}
	}
	return partOf(g, g.namespaceGates, namespace)
}

// RangeGate returns the gate of one range, and makes it if necessary. It is open at first.
func (g *Gate) RangeGate(index int) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rangeGates == nil {
		g.rangeGates = map[int]*Gate{}
	}
	return partOf(g, g.rangeGates, index)
}

// partOf returns one part of the operator's gate, and makes it if necessary. The caller holds the lock.
func partOf[K comparable](g *Gate, parts map[K]*Gate, of K) *Gate {
	part := parts[of]
	if part == nil {
		part = &Gate{operatorGate: g}
		parts[of] = part
	}
	return part
}

// pausedNamespaces returns the namespaces whose own gates are closed, sorted.
func (g *Gate) pausedNamespaces() (names []string) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, part := range g.namespaceGates {
		if !part.Open() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Set closes or opens the gate. When Set(true) has returned, no new work can start.
func (g *Gate) Set(closed bool) { g.applyChange(func() { g.closed = closed }) }

// AllowWritesUntil ends the permission to write at the given time, unless a later call extends it first. After the end,
// no write is sent, neither by the engine nor by the clients of handlers, not even an outcome. Running
// handlers are useless then, so their contexts end at once. The gate counts as closed until there is permission again.
// The zero time means that the permission does not end.
//
// A new permission takes effect only when all work that was running at the end has returned. That work does not see the
// changes that other processes have made since, and must not write with its stale state.
func (g *Gate) AllowWritesUntil(t time.Time) {
	g.applyChange(func() {
		g.expirePermission() // the timer may not have fired yet if the process was suspended
		g.permittedUntil, g.isPermissionExpired = t, g.isPermissionExpired && g.busy > 0
		// The new time may be over already, too.
		g.expirePermission()
		if g.expiryTimer != nil {
			g.expiryTimer.Stop()
			g.expiryTimer = nil
		}
		if !t.IsZero() {
			g.expiryTimer = time.AfterFunc(time.Until(t), func() { g.applyChange(g.expirePermission) })
		}
	})
}

// NoteTakeover makes later openings drop the results of handlers that could not be written before: another process may
// have acted since. Call it while the gate is closed.
func (g *Gate) NoteTakeover() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeovers++
}

// expirePermission takes account of the end of the permission. It cancels the current permission context, and counts as
// a change of the gate even if there is new permission at once, so that everything restarts with fresh state. The
// caller holds the lock.
func (g *Gate) expirePermission() {
	if g.isPermissionExpired || !hasPassed(g.permittedUntil) {
		return
	}
	g.isPermissionExpired = true
	if g.cancelPermission != nil {
		g.cancelPermission(execution.ErrPaused)
		g.permission, g.cancelPermission = nil, nil
	}
	g.notifyWaiters()
}

// applyChange applies a change under the lock, and wakes the waiting callers if it opens or closes the gate.
func (g *Gate) applyChange(apply func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.closed || g.isPermissionExpired
	if apply(); (g.closed || g.isPermissionExpired) != before {
		g.notifyWaiters()
	}
}

// notifyWaiters starts a new period of the gate and wakes the callers that wait for a change. The caller holds the
// lock.
func (g *Gate) notifyWaiters() {
	g.changeCount++
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// WritePermission returns a context that ends when the present permission to write ends. Its cause is
// execution.ErrPaused then. Without permission, the returned context has already ended.
func (g *Gate) WritePermission() context.Context {
	from := context.Background()
	// A namespace depends on the operator's permission, too. Do not hold the own lock for that call: pausedNamespaces
	// takes both locks in the opposite order.
	if g.operatorGate != nil {
		from = g.operatorGate.WritePermission()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permission == nil || g.permission.Err() != nil {
		g.permission, g.cancelPermission = context.WithCancelCause(from)
		if g.isPermissionExpired || hasPassed(g.permittedUntil) {
			g.cancelPermission(execution.ErrPaused)
			// Do not keep an ended context: the next caller may have permission again.
			defer func() { g.permission, g.cancelPermission = nil, nil }()
		}
	}
	return g.permission
}

// hasPassed reports whether the time has passed; the zero time never passes. It compares both clocks: while a machine
// is suspended, its wall clock goes on, and its monotonic clock may not.
func hasPassed(t time.Time) bool {
	now := time.Now()
	return !t.IsZero() && (!now.Before(t) || !now.Round(0).Before(t.Round(0)))
}

// permissionIn returns the permission for a namespace, or for a range in it; the empty namespace stands for
// cluster-scoped objects. The permission for a range does not end with that of the namespace, but [Gate.mayWrite]
// respects both.
func (g *Gate) permissionIn(namespace string, of sharding.Range) context.Context {
	if !of.IsWhole() {
		return g.RangeGate(of.Index).WritePermission()
	}
	if part := g.NamespaceGate(namespace); part != nil {
		return part.WritePermission()
	}
	return g.WritePermission()
}

// hasPermission reports whether this gate alone allows writes.
func (g *Gate) hasPermission() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.isPermissionExpired && !hasPassed(g.permittedUntil)
}

// mayWrite reports whether writes to a namespace may be sent; the empty namespace stands for cluster-scoped objects.
// The context belongs to the work that writes.
func (g *Gate) mayWrite(ctx context.Context, namespace string) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	part := g.namespaceGates[namespace]
	g.mu.Unlock()
	return g.hasPermission() && (part == nil || part.hasPermission()) && g.mayWriteRange(sharding.RangeOf(ctx))
}

// mayWriteRange reports whether the work for a range may write. Work whose range is unknown may be a handler that uses
// a context of its own: while handlers of any lost range are still running, it may not write.
func (g *Gate) mayWriteRange(of sharding.Range) bool {
	if !of.IsWhole() {
		return g.RangeGate(of.Index).hasPermission()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, part := range g.rangeGates {
		if !part.hasPermission() && part.Busy() > 0 {
			return false
		}
	}
	return true
}

// Open reports whether new work may start.
func (g *Gate) Open() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpenLocked()
}

// isOpenLocked is Open for callers that hold the lock. It checks the time itself, because the timer may fire late.
func (g *Gate) isOpenLocked() bool {
	return !g.closed && !g.isPermissionExpired && !hasPassed(g.permittedUntil)
}

// currentOpening returns the present opening, whether the gate is open, and a channel that is closed at the next
// change.
func (g *Gate) currentOpening() (now opening, open bool, changed <-chan struct{}) {
	if g == nil {
		return opening{}, true, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// The state and the channel are read under one lock, so that the caller cannot miss a change between the two.
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return opening{gate: g, changeCount: g.changeCount, takeovers: g.takeovers},
		!g.closed && !g.isPermissionExpired, g.changed
}

// followOpenings calls run for each opening of the gate and paused for each closing, until ctx ends. The context of the
// call ends with execution.ErrPaused at the next change. The next call waits until the former one has returned, and a
// call that returns early is not repeated before the next change.
func (g *Gate) followOpenings(ctx context.Context, run func(context.Context, opening), paused func(context.Context)) {
	for ctx.Err() == nil {
		now, open, changed := g.currentOpening()
		running, end := context.WithCancelCause(ctx)
		go func() {
			select {
			case <-running.Done():
			case <-changed:
				end(execution.ErrPaused)
			}
		}()
		if open {
			run(running, now)
		} else {
			paused(running)
		}
		<-running.Done()
	}
}

// skipPause is the function for pauses in which there is no work to do.
func skipPause(context.Context) {}

package reconcilers

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

package reconcilers

// Enter counts something that begins: the handling of an object, a daemon, a tick of a timer. It is false if nothing
// may begin; otherwise, Leave follows its end.
func (g *Gate) Enter() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open() && g.begin()
}

// begin counts a beginning. The caller holds the lock.
func (g *Gate) begin() bool {
	if g.busy == 0 {
		g.idle = nil
	}
	g.busy++
	return true
}

// Leave counts an end.
func (g *Gate) Leave() {
	if g == nil {
		return
	}
	g.change(func() {
		if g.busy--; g.busy > 0 {
			return
		}
		if g.lapsed = g.lapsed && over(g.until); g.idle != nil {
			close(g.idle)
		}
	})
}

// Busy is how many objects are being handled, daemons run, and timers tick now; a handler counts once with all of its
// sub-handlers, and until its outcome is written. Of a closed gate, it only falls. A handler that goes on after the end
// of its context counts until it returns.
func (g *Gate) Busy() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy
}

// Idle gives what is closed when nothing is running, which may be at once. What begins later does not open it again:
// ask for another one.
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

package reconcilers

import (
	"context"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Gate says whether an operator may act, as another one of a higher priority may object to that. Nil and the zero value
// are open. Close it before the start of an operator that must not act before it is asked to.
//
// While it is closed, no objects are watched, and no handler is called; kinds and namespaces are followed still. What
// runs when it closes may finish within Options.PauseTimeout, and what came of it is written; background handlers are
// told to stop at once. Without the permission to write, all of it ends at once.
type Gate struct {
	mu     sync.Mutex
	closed bool
	until  time.Time // end of the permission to write; zero is no end
	lapsed bool      // that is over, or something runs that has begun before it was over once
	lapse  *time.Timer
	// permission ends with the permission; nil while nobody waits for that.
	permission context.Context //nolint:containedctx // only its end is of interest, and why
	withdraw   context.CancelCauseFunc
	changed    chan struct{} // is closed when the gate opens or closes; nil while nobody waits for that
	number     int           // counts that
	busy       int
	idle       chan struct{} // is closed while busy is zero; nil while nobody waits for that
}

// Set closes the gate, or opens it again. When it returns, nothing begins that the gate forbids.
func (g *Gate) Set(closed bool) { g.change(func() { g.closed = closed }) }

// AllowWritesUntil ends the permission to write at the given time, unless it is called again before that: from then on,
// no write of the engine is sent, and none by the clients of handlers, be it an outcome or not. As handlers are of no
// use then, their contexts end at once, and the gate is closed, too, until there is permission again. The zero time is
// no end.
//
// After an end, there is no permission before all has ended that was running then: it knows nothing of what others have
// done since.
func (g *Gate) AllowWritesUntil(t time.Time) {
	g.change(func() {
		g.expire() // a process that did not run learns of it by this
		g.until, g.lapsed = t, g.lapsed && g.busy > 0
		g.expire()
		if g.lapse != nil {
			g.lapse.Stop()
			g.lapse = nil
		}
		if !t.IsZero() {
			g.lapse = time.AfterFunc(time.Until(t), func() { g.change(g.expire) })
		}
	})
}

// expire notices the end of the permission. All begins anew after it, even if there is permission again at once.
func (g *Gate) expire() {
	if g.lapsed || !over(g.until) {
		return
	}
	g.lapsed = true
	if g.withdraw != nil {
		g.withdraw(execution.ErrPaused)
		g.permission, g.withdraw = nil, nil
	}
	g.tell()
}

// change makes a change, and tells those who wait if it opens or closes the gate.
func (g *Gate) change(apply func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.closed || g.lapsed
	if apply(); (g.closed || g.lapsed) != before {
		g.tell()
	}
}

func (g *Gate) tell() {
	g.number++
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// Permission ends with the permission to write, as it is now.
func (g *Gate) Permission() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permission == nil {
		g.permission, g.withdraw = context.WithCancelCause(context.Background())
		if g.lapsed || over(g.until) {
			g.withdraw(execution.ErrPaused)
			defer func() { g.permission, g.withdraw = nil, nil }()
		}
	}
	return g.permission
}

// over tells whether the time is. A machine that was suspended has a wall clock that knows of it, and another clock
// that may not.
func over(t time.Time) bool {
	now := time.Now()
	return !t.IsZero() && (!now.Before(t) || !now.Round(0).Before(t.Round(0)))
}

// mayWrite tells whether writes may be sent.
func (g *Gate) mayWrite() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.lapsed && !over(g.until)
}

// Open tells whether anything may begin.
func (g *Gate) Open() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open()
}

// open is true neither after the end of the permission nor before that is told. The caller holds the lock.
func (g *Gate) open() bool { return !g.closed && !g.lapsed && !over(g.until) }

// state gives the present opening, false if the gate is closed, and what is closed itself when that has changed.
func (g *Gate) state() (now opening, open bool, changed <-chan struct{}) {
	if g == nil {
		return opening{}, true, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return opening{g, g.number}, !g.closed && !g.lapsed, g.changed
}

// pass runs the function once at each opening of the gate, until the context ends. The function's context ends with
// ErrPaused when the gate is closed, and the next opening waits for its return.
func (g *Gate) pass(ctx context.Context, run func(context.Context, opening)) {
	for ctx.Err() == nil {
		now, open, changed := g.state()
		if !open {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		running, pause := context.WithCancelCause(ctx)
		go func() {
			select {
			case <-running.Done():
			case <-changed:
				pause(execution.ErrPaused)
			}
		}()
		run(running, now)
		<-running.Done()
	}
}

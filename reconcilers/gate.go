package reconcilers

import (
	"context"
	"slices"
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
	whole *Gate // of the operator, if the gate is that of a namespace

	mu     sync.Mutex
	parts  map[string]*Gate // of namespaces
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

// In returns the gate of one namespace. It pauses what the operator does there, and nothing else; the gate of the
// operator pauses all namespaces. What is outside of namespaces has no gate of its own: nil.
func (g *Gate) In(namespace string) *Gate {
	if g == nil || namespace == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	part := g.parts[namespace]
	if part == nil {
		if g.parts == nil {
			g.parts = map[string]*Gate{}
		}
		part = &Gate{whole: g}
		g.parts[namespace] = part
	}
	return part
}

// pausedNamespaces are those whose own gates are closed, sorted.
func (g *Gate) pausedNamespaces() (names []string) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, part := range g.parts {
		if !part.Open() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
	from := context.Background()
	if g.whole != nil {
		from = g.whole.Permission()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permission == nil || g.permission.Err() != nil {
		g.permission, g.withdraw = context.WithCancelCause(from)
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

// permissionIn is that of a namespace; the empty one is what is outside of all.
func (g *Gate) permissionIn(namespace string) context.Context {
	if part := g.In(namespace); part != nil {
		return part.Permission()
	}
	return g.Permission()
}

// hasPermission reports whether writes may be sent, as far as this gate alone is concerned.
func (g *Gate) hasPermission() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.lapsed && !over(g.until)
}

// mayWrite reports whether writes to a namespace may be sent; the empty one is what is outside of all.
func (g *Gate) mayWrite(namespace string) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	part := g.parts[namespace]
	g.mu.Unlock()
	return g.hasPermission() && (part == nil || part.hasPermission())
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
	return opening{gate: g, number: g.number}, !g.closed && !g.lapsed, g.changed
}

// pass runs the function once at each opening of the gate, and the other one at each closing, until the context ends.
// The functions' contexts end with ErrPaused when that changes, and the next one waits for their return.
func (g *Gate) pass(ctx context.Context, run func(context.Context, opening), paused func(context.Context)) {
	for ctx.Err() == nil {
		now, open, changed := g.state()
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

// waiting does nothing while the gate is closed.
func waiting(context.Context) {}

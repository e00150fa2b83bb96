package reconcilers

import (
	"context"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Gate pauses an operator, as another one of a higher priority may ask for. Nil is open for ever, and so is the zero
// value until it is closed. While it is closed, nothing is watched, no handler is called, and background handlers are
// stopped.
type Gate struct {
	mu      sync.Mutex
	closed  bool
	changed chan struct{}
}

// Set closes the gate, or opens it again.
func (g *Gate) Set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == closed {
		return
	}
	g.closed = closed
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// state tells whether the gate is closed, and gives what is closed itself when that has changed.
func (g *Gate) state() (closed bool, changed <-chan struct{}) {
	if g == nil {
		return false, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.closed, g.changed
}

// pass runs the function again and again, as long as the gate is open, until the context ends. Its context ends with
// ErrPaused when the gate is closed.
func (g *Gate) pass(ctx context.Context, run func(context.Context)) {
	for ctx.Err() == nil {
		closed, changed := g.state()
		if closed {
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
		run(running)
		pause(nil)
	}
}

package explorer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
)

var (
	errDead = errors.New("the process is dead")
	errLost = errors.New("connection reset by peer")
)

// Life is one process of the operator, from its start until it is killed. Fakes of outside systems need it to know who
// calls.
type Life struct {
	number     int
	world      *world
	connection *memapi.Connection
	runner     *facadetest.Runner
	ready      <-chan struct{}
	started    chan struct{} // closed when there is a runner
	died       chan struct{}
	dead       bool // under the lock of the world
	wrote      bool // under the lock of the world
}

// Number counts the lives of a course from 1.
func (l *Life) Number() int { return l.number }

// Do is an effect outside of the cluster, such as making a volume: fakes call it, with what shows it in a history. It
// is a point to be cut at, before the effect and after it. In a dead life it has no effect, and does not return until
// the course is over. One effect follows the other, so that fakes need no locks; it must not call Do.
func (l *Life) Do(name string, effect func()) {
	<-l.started
	place := l.world.count("effect", label(name))
	if l.reach(point{place: "before-" + place}) == nil && l.effect(name, effect) &&
		l.reach(point{place: "after-" + place}) == nil {
		return
	}
	<-l.world.over
}

// effect is one effect after the other. It tells whether the life was there for it.
func (l *Life) effect(name string, effect func()) bool {
	w := l.world
	w.effects <- struct{}{}
	defer func() { <-w.effects }()
	if w.isDead(l) {
		return false
	}
	effect()
	w.note(l, "outside: "+name)
	return true
}

func (w *world) isDead(l *Life) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.dead
}

// reach notes a point, and ends the life at that of the course.
func (l *Life) reach(p point) error {
	w := l.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead {
		return errDead
	}
	w.run.points = append(w.run.points, p)
	at := trouble{cut, p.place}
	if p.write != nil && l.number == 2 && !l.wrote {
		l.wrote = true
		if w.strikes(trouble{cut, nextLife}) {
			at = trouble{cut, nextLife}
		}
	}
	if len(w.run.points) > mostPoints && !w.run.exhausted {
		w.run.exhausted = true
		w.run.violate(Restless, "", fmt.Sprintf("something still happens after %d requests and effects", mostPoints))
	} else if at.place != nextLife && !w.strikes(at) {
		return nil
	}
	l.end("KILLED " + p.place)
	return errDead
}

// end kills the process. It is called with the lock.
func (l *Life) end(how string) {
	l.world.bury(l, how)
	l.world.run.kills = append(l.world.run.kills, l.world.since())
	close(l.died)
	l.runner.Kill()
}

// bury ends a life: nothing of it counts any more. It is called with the lock.
func (w *world) bury(l *Life, how string) {
	l.dead = true
	w.run.noteAt(w.since(), fmt.Sprintf("life %d", l.number), how)
	for a := range w.active {
		if a.process == l.number {
			delete(w.active, a)
		}
	}
}

// live starts a process: nothing of it is left to the next one but the API server, and what is outside.
func (w *world) live() *Life {
	w.mu.Lock()
	w.lives++
	l := &Life{number: w.lives, world: w, started: make(chan struct{}), died: make(chan struct{})}
	w.mu.Unlock()
	l.connection = w.server.Connect()
	l.connection.Before, l.connection.After = l.before, l.after
	w.note(l, "is started")
	ctx := kit.Into(w.bench.Context(), kit.Hooks{Observer: l.observe})
	op := w.scenario.Operator(l)
	l.ready = op.Ready()
	l.runner = facadetest.Start(within{w.bench, ctx}, op, facadetest.Against(memapi.Config(w.scenario.Through(l))))
	w.mu.Lock()
	w.life = l
	w.mu.Unlock()
	close(l.started)
	return l
}

// within is a test with another context.
type within struct {
	*bench
	ctx context.Context //nolint:containedctx // tests give their contexts
}

// Context is what observes the operator.
func (w within) Context() context.Context { return w.ctx }

// operate runs one life after the other, until the course is over. People come when the first one is ready.
func (w *world) operate() {
	defer close(w.ended)
	var opened sync.Once
	open := func() { opened.Do(func() { close(w.opened) }) }
	defer open()
	for falls := 0; ; {
		l := w.live()
		select {
		case <-l.ready:
			open()
		case <-l.died:
		case <-l.runner.Ended():
		case <-w.stopping:
		}
		select {
		case <-l.died:
		case <-l.runner.Ended():
			if falls++; !w.fell(l, falls) {
				return
			}
		case <-w.stopping:
			return
		}
		open()
		if w.isExhausted() {
			return
		}
		select {
		case <-w.stopping:
			return
		case <-time.After(restart):
		}
	}
}

// fell notes that an operator has ended by itself, and tells whether it is to be started again.
func (w *world) fell(l *Life, falls int) bool {
	err := l.runner.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead {
		return true
	}
	w.bury(l, fmt.Sprintf("has ended by itself: %v", err))
	if len(w.run.course) > 0 && falls < mostFalls {
		return true
	}
	w.run.violate(Broken, "", fmt.Sprintf("the operator has ended by itself: %v", err))
	return false
}

var _ http.RoundTripper = (*Life)(nil)

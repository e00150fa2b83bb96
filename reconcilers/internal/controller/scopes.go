package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

// errVanished is the cause of the end of one namespace's controller.
var errVanished = fmt.Errorf("the namespace is not served any more: %w", ErrRemoved)

// Namespaces are those whose objects are handled; the empty one is the whole cluster.
type Namespaces interface {
	// Current gives them, and what is closed when they have changed.
	Current() (names []string, changed <-chan struct{})
}

// Turn is the time in which controllers may act, from the beginning of that to the next pause.
type Turn struct {
	// Gate says whether anything may begin in it; nil is always.
	Gate kind.Gate
	// Readiness holds the handlers back until the indices are filled; nil does not.
	Readiness *indexes.Readiness
	// In serves one namespace whenever it may be served within the turn, with the gate of that, and calls the other
	// function while it may not, until the context ends. Nil serves it.
	In func(
		ctx context.Context, namespace string, serve func(context.Context, kind.Gate),
		paused func(context.Context),
	)
}

// scopes are the controllers of one resource, one for each namespace.
type scopes struct {
	deps     *Dependencies
	turn     Turn
	resource discovery.Resource
	handlers []*adapters.Handler
	workers  *workers
	indexing bool // and nothing else: the memory is others'
	running  map[string]scope
	all      sync.WaitGroup
}

// scope is the controller of one namespace, which runs, or is about to end.
type scope struct {
	stop    context.CancelCauseFunc
	done    chan struct{}
	stopped bool
}

// Run handles the objects of a resource in all the namespaces, as they come and go, until the context ends. It returns
// when the last handler has returned.
func Run(
	ctx context.Context, deps *Dependencies, turn Turn, r discovery.Resource, namespaces Namespaces,
	own []*adapters.Handler,
) {
	deps.inspectConditions(ctx, r, own)
	w := newWorkers(deps, r)
	defer deps.Health.Employ(&health.Workers{Kind: r.Kind, Stuck: w.stuck})()
	s := &scopes{
		deps: deps, turn: turn, resource: r, handlers: own, workers: w, running: map[string]scope{},
	}
	s.follow(ctx, namespaces)
}

// Forget forgets all objects of a resource that is not served any more, and of which nothing runs.
func Forget(deps *Dependencies, r discovery.Resource, own []*adapters.Handler) {
	s := &scopes{deps: deps, resource: r, handlers: own, workers: newWorkers(deps, r)}
	for _, name := range deps.Memory.Namespaces(r.GroupResource()) {
		s.abandon(name)
	}
}

// follow has each of the namespaces served until the context ends.
func (s *scopes) follow(ctx context.Context, namespaces Namespaces) {
	defer s.all.Wait()
	for ctx.Err() == nil {
		names, changed := namespaces.Current()
		s.adjust(ctx, names)
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// adjust stops the controllers of namespaces that are not served any more, and starts those of new ones.
func (s *scopes) adjust(ctx context.Context, names []string) {
	for _, name := range s.deps.Memory.Namespaces(s.resource.GroupResource()) {
		if _, known := s.running[name]; !known && !slices.Contains(names, name) && !s.indexing {
			s.abandon(name) // it has vanished while nothing was running
		}
	}
	for name, one := range s.running {
		switch {
		case slices.Contains(names, name) || one.stopped && !one.over():
		case one.stopped:
			delete(s.running, name)
		default:
			one.stop(errVanished)
			one.stopped = true
			s.running[name] = one
		}
	}
	for _, name := range names {
		if before, known := s.running[name]; !known || before.stopped {
			s.start(ctx, name, before.done)
		}
	}
}

// start runs the controller of a namespace, when that of an earlier namespace of this name has ended, if there is one.
func (s *scopes) start(ctx context.Context, name string, before <-chan struct{}) {
	ctx, stop := context.WithCancelCause(ctx)
	now := scope{stop: stop, done: make(chan struct{})}
	s.running[name] = now
	s.all.Go(func() {
		defer close(now.done)
		defer stop(nil)
		if before != nil {
			<-before
		}
		switch {
		case s.indexing:
			s.index(ctx, name)
			return
		case s.turn.In == nil:
			s.serve(ctx, name, s.turn)
		default:
			s.turn.In(ctx, name, func(ctx context.Context, gate kind.Gate) {
				s.serve(ctx, name, Turn{Gate: gate, Readiness: s.turn.Readiness})
			}, func(ctx context.Context) { s.index(ctx, name) })
		}
		if context.Cause(ctx) == errVanished { //nolint:errorlint // a wrapped one is another one's
			s.abandon(name) // what a pause has kept; all else is forgotten
		}
	})
}

// serve handles the objects of a namespace until the context ends.
func (s *scopes) serve(ctx context.Context, name string, turn Turn) {
	c := s.controller(name, turn)
	c.beginMemory()
	c.run(ctx)
}

// index keeps the indices of a namespace filled until the context ends. In a paused namespace, handlers of other ones
// use them, and nothing else is watched there.
func (s *scopes) index(ctx context.Context, name string) {
	indexing := adapters.ByFamily(s.handlers).Indexing
	turn := Turn{Readiness: s.turn.Readiness}
	c := newController(s.deps, turn, s.resource, name, slices.Clone(indexing), s.workers)
	c.health.Pause()
	if len(indexing) > 0 {
		c.index(ctx)
	}
}

func (s *scopes) controller(name string, turn Turn) *Controller {
	return newController(s.deps, turn, s.resource, name, s.handlers, s.workers)
}

// abandon forgets all that is known of a namespace.
func (s *scopes) abandon(name string) {
	c := s.controller(name, s.turn)
	c.beginMemory()
	c.forgetAll()
	s.deps.Memory.Drop(memory.Scope{Resource: s.resource.GroupResource(), Namespace: name})
}

// over tells whether the controller has ended.
func (s scope) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

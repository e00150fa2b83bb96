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

// errNamespaceRemoved is the cause that ends the controller of one namespace.
var errNamespaceRemoved = fmt.Errorf("the namespace is not served any more: %w", ErrRemoved)

// Namespaces lists the namespaces whose objects are handled; the empty name is the whole cluster.
type Namespaces interface {
	// Current returns the names, and a channel that is closed when they have changed.
	Current() (names []string, changed <-chan struct{})
}

// Turn is the period in which controllers may act, until the next pause.
type Turn struct {
	// Gate permits passes to begin; a nil gate always does.
	Gate kind.WorkGate
	// Takeovers is how many times another process may have acted before.
	Takeovers int
	// Readiness blocks handlers until the indices are filled; nil does not block.
	Readiness *indexes.Readiness
	// FollowPauses calls serve with the gate of one namespace whenever it may be served, and paused while it may not,
	// until the context ends. It is for operators that pause by namespace. If nil, the namespace is served all the
	// time.
	FollowPauses func(
		ctx context.Context, namespace string, serve func(context.Context, kind.WorkGate),
		paused func(context.Context),
	)
}

// namespaceControllers runs the controllers of one resource, one for each namespace.
type namespaceControllers struct {
	deps *Dependencies
	// turn ends with the context of follow.
	turn               Turn
	resource           discovery.Resource
	handlers           []*adapters.HandlerChain
	workers            *workers
	indexing           bool                           // only fill indices; other controllers own the memory
	byNamespace        map[string]namespaceController // by namespace; used by the goroutine of follow only
	runningControllers sync.WaitGroup                 // counts the running controllers
}

// namespaceController is the controller of one namespace. It may be stopping.
type namespaceController struct {
	stop context.CancelCauseFunc
	// done is closed when the controller has ended; stopped is set when stop was called.
	done    chan struct{}
	stopped bool
}

// Run handles the objects of a resource in all of the namespaces, as they come and go, until the context ends. It
// returns when the last handler has returned.
func Run(
	ctx context.Context, deps *Dependencies, turn Turn, r discovery.Resource, namespaces Namespaces,
	own []*adapters.HandlerChain,
) {
	deps.inspectConditions(ctx, r, own)
	w := newWorkers(deps, r)
	// Handlers that are stuck make the process unhealthy, see package health.
	defer deps.Health.AddWorkers(&health.Workers{Kind: r.Kind, StuckPasses: w.stuckHandlers})()
	s := &namespaceControllers{
		deps: deps, turn: turn, resource: r, handlers: own, workers: w, byNamespace: map[string]namespaceController{},
	}
	s.followNamespaces(ctx, namespaces)
}

// ForgetResource drops the memory of a resource that is not served any more. No controller of it may run.
func ForgetResource(deps *Dependencies, r discovery.Resource, own []*adapters.HandlerChain) {
	s := &namespaceControllers{deps: deps, resource: r, handlers: own, workers: newWorkers(deps, r)}
	for _, name := range deps.Memory.KnownNamespaces(r.GroupResource()) {
		s.forgetNamespace(name)
	}
}

// followNamespaces starts and stops controllers until the context ends, as namespaces come and go. It waits for all of
// them.
func (s *namespaceControllers) followNamespaces(ctx context.Context, namespaces Namespaces) {
	defer s.runningControllers.Wait()
	for ctx.Err() == nil {
		names, changed := namespaces.Current()
		s.adjustControllers(ctx, names)
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// adjustControllers stops the controllers of removed namespaces, and starts those of new ones.
func (s *namespaceControllers) adjustControllers(ctx context.Context, names []string) {
	// Memory without a running controller belongs to a namespace that was removed during a pause. An indexing replica
	// must not touch it.
	for _, name := range s.deps.Memory.KnownNamespaces(s.resource.GroupResource()) {
		if _, known := s.byNamespace[name]; !known && !slices.Contains(names, name) && !s.indexing {
			s.forgetNamespace(name) // removed while no controller was running
		}
	}
	// Stop first. An entry remains until its controller has ended, so that a namespace that returns can wait for it.
	for name, one := range s.byNamespace {
		switch {
		case slices.Contains(names, name) || one.stopped && !one.hasEnded():
			// Keep a namespace that is served, or whose controller is still stopping.
		case one.stopped:
			delete(s.byNamespace, name)
		default:
			// The cause makes the controller drop its memory, as for a removed kind.
			one.stop(errNamespaceRemoved)
			one.stopped = true
			s.byNamespace[name] = one
		}
	}
	for _, name := range names {
		// A namespace without a controller, or whose former controller is stopping or has ended.
		if before, known := s.byNamespace[name]; !known || before.stopped {
			s.startController(ctx, name, before.done)
		}
	}
}

// startController runs the controller of a namespace. If an earlier controller of this name is still stopping, it waits
// for the end of that one, because both use the same memory.
func (s *namespaceControllers) startController(ctx context.Context, name string, before <-chan struct{}) {
	ctx, stop := context.WithCancelCause(ctx)
	now := namespaceController{stop: stop, done: make(chan struct{})}
	s.byNamespace[name] = now
	s.runningControllers.Go(func() {
		defer close(now.done)
		defer stop(nil)
		if before != nil {
			<-before
		}
		switch {
		case s.indexing:
			// An indexing replica only fills indices, and does not own the memory of passes.
			s.indexNamespace(ctx, name)
			return
		case s.turn.FollowPauses == nil:
			s.serveNamespace(ctx, name, s.turn)
		default:
			// The operator pauses by namespace: handle objects while the namespace is not paused, and only fill indices
			// otherwise.
			s.turn.FollowPauses(ctx, name, func(ctx context.Context, gate kind.WorkGate) {
				turn := s.turn
				turn.Gate = gate
				s.serveNamespace(ctx, name, turn)
			}, func(ctx context.Context) { s.indexNamespace(ctx, name) })
		}
		if context.Cause(ctx) == errNamespaceRemoved { //nolint:errorlint // a wrapped one is another one's
			s.forgetNamespace(name) // the memory of a paused namespace; running controllers drop their own
		}
	})
}

// serveNamespace handles the objects of a namespace until the context ends.
func (s *namespaceControllers) serveNamespace(ctx context.Context, name string, turn Turn) {
	c := s.controllerFor(name, turn)
	c.beginMemory()
	c.runWithRestarts(ctx)
}

// indexNamespace fills the indices of a namespace until the context ends, and watches nothing else. Handlers of other
// namespaces use the indices while this one is paused.
func (s *namespaceControllers) indexNamespace(ctx context.Context, name string) {
	indexing := adapters.ByFamily(s.handlers).Indexing
	turn := Turn{Readiness: s.turn.Readiness}
	// Without the other handlers, the informer does not need their fields or labels.
	c := newController(s.deps, turn, s.resource, name, slices.Clone(indexing), s.workers)
	c.health.ReportPaused()
	if len(indexing) > 0 {
		c.runIndexing(ctx)
	}
}

// controllerFor creates the controller of a namespace with all handlers.
func (s *namespaceControllers) controllerFor(name string, turn Turn) *Controller {
	return newController(s.deps, turn, s.resource, name, s.handlers, s.workers)
}

// forgetNamespace drops everything that is stored in memory for a namespace, and reports its objects as deleted.
func (s *namespaceControllers) forgetNamespace(name string) {
	// The memory can only be cleared through a controller, which also reports the objects to the dependents.
	c := s.controllerFor(name, s.turn)
	c.beginMemory()
	c.forgetAllObjects()
	s.deps.Memory.DropScope(memory.KindScope{Resource: s.resource.GroupResource(), Namespace: name})
}

// hasEnded reports whether the controller has ended.
func (s namespaceController) hasEnded() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

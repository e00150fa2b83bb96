package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// errScopeRemoved is the cause that ends the controller of one namespace or range.
var errScopeRemoved = fmt.Errorf("the namespace or the range is not served any more: %w", ErrRemoved)

// Namespaces lists the namespaces whose objects are handled; the empty name is the whole cluster.
type Namespaces interface {
	// Current returns the names, and a channel that is closed when they have changed.
	Current() (names []string, changed <-chan struct{})
}

// ServeScope serves a scope until the context ends. It gets the gate of the scope, and how many times another process
// may have acted there before.
type ServeScope func(ctx context.Context, gate kind.WorkGate, takeovers int)

// scopeControllers runs controllers of one resource with the same handlers, one for each namespace. If the replicas
// share the objects, there is one for each range in each namespace.
type scopeControllers struct {
	deps *Dependencies
	// turn ends with the context of follow.
	turn     Turn
	resource discovery.Resource
	handlers []*adapters.HandlerChain // of these controllers
	siblings []*adapters.HandlerChain // all handlers of the resource, which share the memory on the objects
	workers  *workers
	ranges   *sharding.OwnRanges // nil if each controller handles all objects of its namespace
	indexing bool                // only fill indices; other controllers own the memory

	byScope            map[memory.KindScope]scopeController // used by the goroutine of followScopes only
	runningControllers sync.WaitGroup                       // counts the running controllers
}

// scopeController is the controller of one scope. It may be stopping.
type scopeController struct {
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
	var running sync.WaitGroup
	defer running.Wait()
	for _, group := range groupHandlers(deps.Ranges, own) {
		s := &scopeControllers{
			deps: deps, turn: turn, resource: r, handlers: group.handlers, siblings: own, workers: w,
			ranges: group.ranges, indexing: group.indexing, byScope: map[memory.KindScope]scopeController{},
		}
		if group.indexing {
			logging.OfKind(deps.Log, r.GroupVersionKind).Info("Watching the objects of all ranges for indices; "+
				"kopf.ByRange limits an index to the own ranges", "handlers", adapters.HandlerIDs(group.handlers))
		}
		if group.hasNoIndices {
			s.turn.Readiness = nil // it must not report the indices of the other group as filled
		}
		running.Go(func() { s.followScopes(ctx, namespaces) })
	}
}

// ForgetResource drops the memory of a resource that is not served any more. No controller of it may run.
func ForgetResource(deps *Dependencies, r discovery.Resource, own []*adapters.HandlerChain) {
	s := &scopeControllers{deps: deps, resource: r, handlers: own, siblings: own, workers: newWorkers(deps, r)}
	for _, scope := range deps.Memory.ScopesOf(r.GroupResource()) {
		s.forgetScope(scope)
	}
}

// followScopes starts and stops controllers until the context ends, as namespaces and ranges come and go. It waits for
// all of them.
func (s *scopeControllers) followScopes(ctx context.Context, namespaces Namespaces) {
	defer s.runningControllers.Wait()
	for ctx.Err() == nil {
		names, changed := namespaces.Current()
		ranges, moved := s.ranges.Current()
		s.adjustControllers(ctx, s.scopesIn(names, ranges))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-moved:
		}
	}
}

// scopesIn returns the scopes of the resource in these namespaces.
func (s *scopeControllers) scopesIn(names []string, ranges []sharding.Range) (scopes []memory.KindScope) {
	for _, name := range names {
		for _, one := range ranges {
			scopes = append(scopes, memory.KindScope{
				Resource: s.resource.GroupResource(), Namespace: name, Range: one,
			})
		}
	}
	return scopes
}

// adjustControllers stops the controllers of removed scopes, and starts those of new ones.
func (s *scopeControllers) adjustControllers(ctx context.Context, scopes []memory.KindScope) {
	// Memory without a running controller belongs to a scope that was removed during a pause. A replica that only fills
	// indices must not touch it.
	for _, scope := range s.deps.Memory.ScopesOf(s.resource.GroupResource()) {
		_, known := s.byScope[scope]
		isOwn := (!s.indexing || s.deps.Ranges != nil) && scope.Range.IsWhole() == (s.ranges == nil)
		if isOwn && !known && !slices.Contains(scopes, scope) {
			s.forgetScope(scope) // removed while no controller was running
		}
	}
	// Stop first. An entry remains until its controller has ended, so that a scope that returns can wait for it.
	for scope, one := range s.byScope {
		switch {
		case slices.Contains(scopes, scope) || one.stopped && !one.hasEnded():
			// Keep a scope that is served, or whose controller is still stopping.
		case one.stopped:
			delete(s.byScope, scope)
		default:
			// The cause makes the controller drop its memory, as for a removed kind.
			one.stop(errScopeRemoved)
			one.stopped = true
			s.byScope[scope] = one
		}
	}
	for _, scope := range scopes {
		// A scope without a controller, or whose former controller is stopping or has ended.
		if before, known := s.byScope[scope]; !known || before.stopped {
			s.startController(ctx, scope, before.done)
		}
	}
}

// startController runs the controller of a scope. If an earlier controller of the scope is still stopping, it waits for
// the end of that one, because both use the same memory.
func (s *scopeControllers) startController(ctx context.Context, scope memory.KindScope, before <-chan struct{}) {
	ctx, stop := context.WithCancelCause(ctx)
	now := scopeController{stop: stop, done: make(chan struct{})}
	s.byScope[scope] = now
	s.runningControllers.Go(func() {
		defer close(now.done)
		defer stop(nil)
		if before != nil {
			<-before
		}
		switch {
		case s.indexing:
			// It only fills indices, and does not own the memory of passes.
			s.indexScope(ctx, scope)
			return
		case s.turn.FollowPauses == nil:
			s.serveScope(ctx, scope, s.turn)
		default:
			// The operator pauses by namespace or range: handle objects while the scope is not paused. Handlers in
			// other namespaces may need the indices of a paused one. A range is paused only until it moves or is
			// regained.
			reportPaused := func(context.Context) { s.deps.Health.Scope(scope.String()).ReportPaused() }
			s.turn.FollowPauses(ctx, scope, func(ctx context.Context, gate kind.WorkGate, takeovers int) {
				turn := s.turn
				turn.Gate, turn.Takeovers = gate, turn.Takeovers+takeovers
				s.serveScope(ctx, scope, turn)
			}, func(ctx context.Context) {
				reportPaused(ctx)
				s.indexScope(ctx, scope)
			}, reportPaused)
		}
		if context.Cause(ctx) == errScopeRemoved { //nolint:errorlint // a wrapped one is another one's
			s.forgetScope(scope) // the memory of a paused scope; running controllers drop their own
		}
	})
}

// serveScope handles the objects of a scope until the context ends.
func (s *scopeControllers) serveScope(ctx context.Context, scope memory.KindScope, turn Turn) {
	c := s.controllerFor(scope, turn)
	c.beginMemory()
	c.runWithRestarts(ctx)
}

// indexScope fills the indices of a scope until the context ends, and watches nothing else. Handlers of other scopes
// use the indices while this one is paused.
func (s *scopeControllers) indexScope(ctx context.Context, scope memory.KindScope) {
	indexing := adapters.ByFamily(s.handlers).Indexing
	if len(indexing) == 0 {
		return
	}
	turn := Turn{Readiness: s.turn.Readiness}
	// Without the other handlers, the informer does not need their fields or labels.
	own := slices.Clone(indexing)
	c := newController(s.deps, turn, s.resource, scope, own, own, s.workers)
	if s.deps.Ranges == nil || !s.indexing {
		c.health = nil // a paused scope, and a process that only stands by, are healthy without their indices
	}
	c.runIndexing(ctx)
}

// controllerFor creates the controller of a scope with all handlers.
func (s *scopeControllers) controllerFor(scope memory.KindScope, turn Turn) *Controller {
	return newController(s.deps, turn, s.resource, scope, s.handlers, s.siblings, s.workers)
}

// forgetScope drops everything that is stored in memory for a scope, and reports its objects as deleted.
func (s *scopeControllers) forgetScope(scope memory.KindScope) {
	// The memory can only be cleared through a controller, which also reports the objects to the dependents.
	c := s.controllerFor(scope, s.turn)
	c.beginMemory()
	c.forgetAllObjects()
	s.deps.Memory.DropScope(scope)
}

// hasEnded reports whether the controller has ended.
func (s scopeController) hasEnded() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// handlerGroup has handlers of one kind that share controllers.
type handlerGroup struct {
	handlers     []*adapters.HandlerChain
	ranges       *sharding.OwnRanges // nil if the controllers handle all objects
	indexing     bool                // the controllers only fill indices
	hasNoIndices bool                // another group has them
}

// groupHandlers divides the handlers of a kind. Indices need all objects, and so do the parents of children: a parent
// and its child are seldom in the same range. All other handlers are called for the objects of the own ranges only.
func groupHandlers(ranges *sharding.OwnRanges, own []*adapters.HandlerChain) (groups []handlerGroup) {
	if ranges == nil {
		return []handlerGroup{{handlers: own}}
	}
	var parents, indices, ranged []*adapters.HandlerChain
	for _, h := range own {
		switch {
		case !h.Description.NeedsAllObjects():
			ranged = append(ranged, h)
		case h.Description.WatchesChildren():
			parents = append(parents, h)
		default:
			indices = append(indices, h)
		}
	}
	for _, group := range []handlerGroup{
		{handlers: parents, hasNoIndices: true},
		{handlers: indices, indexing: true},
		{handlers: ranged, ranges: ranges},
	} {
		if len(group.handlers) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// logForeignObjects logs, once for each kind, that the API server sends the objects of all ranges.
func (c *Controller) logForeignObjects() {
	kind := c.scope.Resource
	if _, logged := c.deps.loggedForeignKinds.LoadOrStore(kind, true); !logged {
		c.log.Info("The API server does not filter by ranges, so this process receives the objects of all ranges for "+
			"each of its own, and drops the others. Its memory stays small, its network traffic does not: use few "+
			"ranges, or enable the feature gate ShardedListAndWatch of the API server", "resource", kind.String())
	}
}

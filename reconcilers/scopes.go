package reconcilers

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/orchestration"
)

// scopes are the resources that an operator serves, each in its namespaces: either may change at any time.
type scopes struct {
	live   *namespaces.Live
	client dynamic.Interface

	mu         sync.Mutex         // held while the namespaces change, so that nothing runs unannounced
	opening    int                // the number of the last one of the gate
	readiness  *indexes.Readiness // of that; nil before the first
	announced  bool
	assigned   []orchestration.Assignment
	unanswered []discovery.Selector
	refused    map[schema.GroupResource]bool
	begun      bool
}

func newScopes(o Options, client dynamic.Interface) *scopes {
	s := &scopes{live: o.Served, client: client, refused: map[schema.GroupResource]bool{}}
	if s.live == nil {
		s.live = namespaces.NewLive()
	}
	return s
}

// beginScopes has the namespaces served that need no look at the cluster, and gives what keeps them up to date until
// the context ends: only if patterns have to be compared with those that there are. Once begun, there is nothing to do.
func (o *operator) beginScopes(ctx context.Context) (watch func()) {
	o.scopes.mu.Lock()
	begun := o.scopes.begun
	o.scopes.begun = true
	o.scopes.mu.Unlock()
	if begun {
		return nil
	}
	patterns := o.options.Namespaces
	names, plain := patterns.Plain()
	switch {
	case len(patterns) == 0:
		o.serve(ctx, []string{namespaces.Everywhere})
	case plain:
		o.serve(ctx, names)
	case o.options.ScanOnce:
		names = patterns.Named()
		logging.Warn(o.log, "Scanning is disabled, so only those namespaces are served that are named in full",
			"namespaces", names, "patterns", patterns.Texts())
		o.serve(ctx, names)
	default:
		watcher := &namespaces.Watcher{
			Client: o.scopes.client, Patterns: patterns, Serve: func(names []string) { o.serve(ctx, names) },
		}
		return func() { watcher.Run(ctx) }
	}
	return nil
}

// serve has all resources served in these namespaces from now on.
func (o *operator) serve(ctx context.Context, names []string) {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := s.live.Current()
	appeared, vanished := without(names, before), without(before, names)
	switch {
	case before == nil && len(o.options.Namespaces) > 0:
		o.log.Info("Serving namespaces", "namespaces", names)
	case before != nil && len(appeared)+len(vanished) == 0:
		return
	case before != nil:
		o.log.Info("Namespaces appeared or vanished; serving those that match", "appeared", appeared,
			"vanished", vanished)
	}
	if s.announced {
		o.announce(names)
	}
	if o.indexing != nil {
		o.indexing.announce(names)
	}
	s.live.Set(names)
}

// without are the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// turn gives what handlers wait for in an opening of the gate. Whoever serves asks for it before it begins; with the
// first one, all handlers wait, anew in each opening, for the indices of what is there by then.
func (o *operator) turn(now opening) controller.Turn {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := controller.Turn{Readiness: indexes.NewReadiness()}
	if o.options.Gate != nil {
		turn.Gate = now
	}
	switch {
	case s.readiness == nil || now.number > s.opening:
		s.readiness, s.opening = turn.Readiness, now.number
		names, _ := s.live.Current()
		s.awaitIndices(o.options, names)
	case now.number == s.opening:
		turn.Readiness = s.readiness
	default: // it is over, and never ready
	}
	return turn
}

// awaitIndices has handlers wait for the indices of what is announced, in these namespaces, if anything is served yet.
// The lock is held.
func (s *scopes) awaitIndices(o Options, names []string) {
	if s.readiness != nil && s.announced {
		s.readiness.Begin(o.indexed(s.assigned, s.refused, s.unanswered, names))
	}
}

// waiting are the scopes whose indices are waited for.
func (s *scopes) waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readiness == nil {
		return nil
	}
	return s.readiness.Waiting()
}

// Announce makes all handlers wait for the indices of what is about to be served, and the operator is not ready before
// all of it is.
func (o *operator) Announce(
	_ context.Context, all []orchestration.Assignment, unanswered []discovery.Selector,
) {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced, s.assigned, s.unanswered = true, all, unanswered
	names, _ := s.live.Current()
	o.announce(names)
}

// announce is for what is assigned, in these namespaces; nil ones are not known yet. The lock is held.
func (o *operator) announce(names []string) {
	var serving, unknown []string
	for _, a := range o.scopes.assigned {
		serving = append(serving, scopesOf(a.Resource, names)...)
	}
	for _, selector := range o.scopes.unanswered {
		unknown = append(unknown, selector.String())
	}
	if names == nil {
		unknown = append(unknown, "namespaces")
	}
	o.health.Announce(serving, unknown)
	for _, a := range o.scopes.assigned {
		if o.scopes.refused[a.Resource.GroupResource()] {
			o.refuseIn(a.Resource, names)
		}
	}
	o.scopes.awaitIndices(o.options, names)
}

// indexed are the scopes with indices that are filled for what is assigned, and what may mean further ones.
func (o Options) indexed(
	assigned []orchestration.Assignment, refused map[schema.GroupResource]bool, unanswered []discovery.Selector,
	names []string,
) (filling, unknown []string) {
	for _, a := range assigned {
		if len(adapters.ByFamily(a.Handlers).Indexing) > 0 && !refused[a.Resource.GroupResource()] {
			filling = append(filling, scopesOf(a.Resource, names)...)
		}
	}
	for _, selector := range unanswered {
		if o.indexes(selector) {
			unknown = append(unknown, selector.String())
		}
	}
	if names == nil && slices.ContainsFunc(o.selectors(), o.indexes) {
		unknown = append(unknown, "namespaces")
	}
	return filling, unknown
}

// refuse notes that a resource is not served in any namespace, until it is tried again.
func (o *operator) refuse(r discovery.Resource) {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	o.scopes.refused[r.GroupResource()] = true
	names, _ := o.scopes.live.Current()
	o.refuseIn(r, names)
	o.scopes.without(r)
}

func (o *operator) refuseIn(r discovery.Resource, names []string) {
	for _, scope := range scopesOf(r, names) {
		o.health.Scope(scope).Refuse()
	}
}

// removed is for a resource that is not served any more.
func (o *operator) removed(r discovery.Resource) {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	o.scopes.without(r)
}

// without is for a resource that is not served: handlers must not wait for its indices. The lock is held.
func (s *scopes) without(r discovery.Resource) {
	names, _ := s.live.Current()
	for _, scope := range scopesOf(r, names) {
		s.readiness.Done(scope)
	}
}

// namespacesOf are those that a resource is served in.
func (o *operator) namespacesOf(r discovery.Resource) controller.Namespaces {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	delete(o.scopes.refused, r.GroupResource())
	return o.liveOf(r)
}

// liveOf are those that a resource is in.
func (o *operator) liveOf(r discovery.Resource) controller.Namespaces {
	if !r.Namespaced {
		return namespaces.NewLive(namespaces.Everywhere)
	}
	return o.scopes.live
}

// scopesOf are the names of the scopes of a resource.
func scopesOf(r discovery.Resource, names []string) (all []string) {
	if !r.Namespaced {
		names = []string{namespaces.Everywhere}
	}
	for _, namespace := range names {
		all = append(all, memory.Scope{Resource: r.GroupResource(), Namespace: namespace}.String())
	}
	return all
}

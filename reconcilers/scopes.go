package reconcilers

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// scopes are the resources that an operator serves, each in its namespaces: either may change at any time.
type scopes struct {
	matching *namespaces.Live // where they may be served; indices are filled there, whoever serves
	live     *namespaces.Live // where they are served
	client   dynamic.Interface

	mu      sync.Mutex // held while the namespaces change, so that nothing runs unannounced
	gated   bool       // objects pass through the gate
	opening int        // the number of the last one of the gate, whose readiness the ledger has
	ledger
	begun bool
}

func newScopes(o Options, client dynamic.Interface) *scopes {
	return &scopes{
		matching: cmp.Or(o.Matching, namespaces.NewLive()), live: namespaces.NewLive(), client: client,
		ledger: ledger{refused: map[schema.GroupResource]bool{}}, gated: o.Gate != nil && o.NeedsGate == nil,
	}
}

// beginScopes has the namespaces served that need no look at the cluster, and gives what keeps them up to date until
// the context ends, if anything does. Once begun, there is nothing to do.
func (o *operator) beginScopes(ctx context.Context) (watch func()) {
	o.scopes.mu.Lock()
	begun := o.scopes.begun
	o.scopes.begun = true
	o.scopes.mu.Unlock()
	if begun {
		return nil
	}
	matching := o.beginMatching(ctx)
	if o.options.Admitted == nil {
		return matching
	}
	return func() {
		var running sync.WaitGroup
		defer running.Wait()
		if matching != nil {
			running.Go(matching)
		}
		o.followAdmitted(ctx)
	}
}

// beginMatching gives what compares patterns with the namespaces that there are, only if that has to be done.
func (o *operator) beginMatching(ctx context.Context) (watch func()) {
	patterns := o.options.Namespaces
	names, plain := patterns.Plain()
	switch {
	case len(patterns) == 0:
		o.match([]string{namespaces.Everywhere})
	case plain:
		o.match(names)
	case o.options.ScanOnce:
		names = patterns.Named()
		logging.Warn(o.log, "Scanning is disabled, so only those namespaces are served that are named in full",
			"namespaces", names, "patterns", patterns.Texts())
		o.match(names)
	default:
		watcher := &namespaces.Watcher{Client: o.scopes.client, Patterns: patterns, Serve: o.match}
		return func() { watcher.Run(ctx) }
	}
	return nil
}

// match has all resources served in these namespaces from now on, as far as they are admitted.
func (o *operator) match(names []string) {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.indexing != nil {
		o.indexing.awaitIndices(o.options, names)
	}
	s.matching.Set(names)
	o.serve()
}

// followAdmitted has resources served in namespaces as these are admitted.
func (o *operator) followAdmitted(ctx context.Context) {
	for ctx.Err() == nil {
		_, changed := o.options.Admitted.Current()
		o.scopes.mu.Lock()
		o.serve()
		o.scopes.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// serve has all resources served where that is possible by now. The lock is held.
func (o *operator) serve() {
	s := o.scopes
	names, _ := s.matching.Current()
	if names != nil && o.options.Admitted != nil {
		admitted, _ := o.options.Admitted.Current()
		if admitted == nil {
			return
		}
		names = without(names, without(names, admitted))
	}
	if names == nil {
		return
	}
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
	if s.gated {
		turn.Gate, turn.In = now, now.in
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
	s.announce(all, unanswered)
	for _, a := range all {
		if o.options.Owned != nil && len(a.Parents) > 0 {
			o.options.Owned.AddParents(a.Resource.GroupKind(), a.Parents)
		}
	}
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

// refuse notes that a resource is not served in any namespace, until it is tried again.
func (o *operator) refuse(r discovery.Resource) {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	names, _ := o.scopes.live.Current()
	o.refuseIn(r, names)
	o.scopes.refuse(r, names)
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
	names, _ := o.scopes.live.Current()
	o.scopes.without(r, names)
}

// namespacesOf are those that a resource is served in.
func (o *operator) namespacesOf(r discovery.Resource) controller.Namespaces {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	delete(o.scopes.refused, r.GroupResource())
	return namespacesOf(r, o.scopes.live)
}

// namespacesOf are those of the namespaces that a resource is in.
func namespacesOf(r discovery.Resource, all *namespaces.Live) controller.Namespaces {
	if !r.Namespaced {
		return namespaces.NewLive(namespaces.Everywhere)
	}
	return all
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

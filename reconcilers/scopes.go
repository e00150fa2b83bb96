package reconcilers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// forgetDelay returns the time from the deletion of an object until the watches of all objects report it. If the
// replicas share the objects, the handlers of its range come first.
func (o Options) forgetDelay() time.Duration {
	if o.Ranges == nil {
		return 0
	}
	return time.Minute
}

// scopes are the resources that an operator serves, each in its namespaces. Both sets may change at any time.
type scopes struct {
	matchingNamespaces *namespaces.LiveNamespaces // namespaces that match; indices are filled there on every replica
	// namespaces in which the controllers handle objects: matching and admitted ones
	servedNamespaces *namespaces.LiveNamespaces
	servedRanges     *sharding.OwnRanges // ranges of which the controllers handle objects; nil means all objects
	client           dynamic.Interface

	mu            sync.Mutex // held while namespaces or ranges change, so that no scope runs unannounced
	gated         bool       // objects pass through the gate: a nil NeedsGate counts as true
	latestOpening int        // number of the gate's latest opening, to which the ledger's readiness belongs
	ledger
	begun bool // beginScopes was called
}

// newScopes makes the scopes without any namespace: they are not known before beginScopes.
func newScopes(o Options, client dynamic.Interface) *scopes {
	s := &scopes{
		matchingNamespaces: cmp.Or(o.MatchingNamespaces, namespaces.NewLive()), servedNamespaces: namespaces.NewLive(),
		client: client,
		ledger: ledger{refusedResources: map[schema.GroupResource]bool{}}, gated: o.Gate != nil && o.NeedsGate == nil,
	}
	if o.Ranges != nil {
		s.servedRanges = sharding.NewOwnRanges(o.Ranges.Count)
	}
	return s
}

// beginScopes sets the namespaces that do not depend on the cluster. It returns the function that keeps the others up
// to date until the context ends, or nil if there are none. The controllers and the replica share the scopes: only the
// first call has an effect.
func (o *operator) beginScopes(ctx context.Context) (watch func()) {
	o.scopes.mu.Lock()
	begun := o.scopes.begun
	o.scopes.begun = true
	o.scopes.mu.Unlock()
	if begun {
		return nil
	}
	watches := []func(){}
	if matching := o.beginMatching(ctx); matching != nil {
		watches = append(watches, matching)
	}
	if o.options.AdmittedNamespaces != nil {
		watches = append(watches, func() { o.followAdmitted(ctx) })
	}
	if o.options.Ranges != nil {
		watches = append(watches, func() { o.followRanges(ctx) })
	}
	if len(watches) == 0 {
		return nil
	}
	return func() {
		var running sync.WaitGroup
		defer running.Wait()
		for _, watch := range watches {
			running.Go(watch)
		}
	}
}

// beginMatching sets the namespaces, or returns the function that watches the cluster's namespaces. Only patterns and
// label selectors need the watch, which needs a permission of its own.
func (o *operator) beginMatching(ctx context.Context) (watch func()) {
	patterns := o.options.Namespaces
	names, plain := patterns.PlainNames()
	switch {
	case len(patterns) == 0:
		o.setMatching([]string{namespaces.Everywhere})
	case plain:
		o.setMatching(names)
	case o.options.ScanOnce:
		names = patterns.ExactNames()
		logging.Warn(o.log, "Scanning is disabled, so only those namespaces are served that are named in full",
			"namespaces", names, "patterns", patterns.Texts())
		o.setMatching(names)
	default:
		watcher := &namespaces.NamespaceWatcher{Client: o.scopes.client, Patterns: patterns, Serve: o.setMatching}
		return func() { watcher.Run(ctx) }
	}
	return nil
}

// setMatching replaces the matching namespaces and serves those that are admitted.
func (o *operator) setMatching(names []string) {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	// Announce the scopes first: the indices must not count as filled before they contain a new namespace.
	if o.indexing != nil {
		o.indexing.awaitIndices(o.options, names)
	}
	s.matchingNamespaces.Replace(names)
	o.updateServed()
}

// followAdmitted updates the served namespaces whenever the admitted ones change, until the context ends.
func (o *operator) followAdmitted(ctx context.Context) {
	for ctx.Err() == nil {
		_, changed := o.options.AdmittedNamespaces.Current()
		o.scopes.mu.Lock()
		o.updateServed()
		o.scopes.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// followRanges serves the own ranges whenever these change, until the context ends.
func (o *operator) followRanges(ctx context.Context) {
	s := o.scopes
	for ctx.Err() == nil {
		held, changed := o.options.Ranges.Held.Current()
		s.mu.Lock()
		next := sharding.NewOwnRanges(o.options.Ranges.Count, held...)
		// Announce before the controllers see the new ranges and start.
		if s.announced {
			names, _ := s.servedNamespaces.Current()
			o.announceScopes(names, next)
		}
		s.servedRanges.Held.Replace(held)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// updateServed updates the served namespaces and announces their scopes. It does nothing as long as the matching or the
// admitted namespaces are unknown. The caller holds the lock.
func (o *operator) updateServed() {
	s := o.scopes
	names, _ := s.matchingNamespaces.Current()
	if names != nil && o.options.AdmittedNamespaces != nil {
		admitted, _ := o.options.AdmittedNamespaces.Current()
		if admitted == nil {
			return
		}
		names = subtractNames(names, subtractNames(names, admitted)) // the intersection, in the order of names
	}
	if names == nil {
		return
	}
	before, _ := s.servedNamespaces.Current()
	appeared, vanished := subtractNames(names, before), subtractNames(before, names)
	switch {
	case before == nil && len(o.options.Namespaces) > 0:
		o.log.Info("Serving namespaces", "namespaces", names)
	case before != nil && len(appeared)+len(vanished) == 0:
		return
	case before != nil:
		o.log.Info("Namespaces appeared or vanished; serving those that match", "appeared", appeared,
			"vanished", vanished)
	}
	// Announce before the controllers see the new namespaces and start.
	if s.announced {
		o.announceScopes(names, s.servedRanges)
	}
	s.servedNamespaces.Replace(names)
}

// subtractNames returns the names that are not among the others.
func subtractNames(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// turnFor returns the readiness and the gate for controllers that start in an opening of the gate. The first call for
// an opening makes a new readiness: all handlers wait until the indices of the resources that are known then are
// filled. Further calls for the opening share it, and calls for an ended one get a readiness that never opens.
func (o *operator) turnFor(now opening) controller.Turn {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := controller.Turn{Readiness: indexes.NewReadiness(), Takeovers: now.takeovers}
	if s.gated {
		turn.Gate, turn.FollowPauses = now, now.serveScope
	}
	switch {
	case s.readiness == nil || now.changeCount > s.latestOpening:
		s.readiness, s.latestOpening = turn.Readiness, now.changeCount
		names, _ := s.servedNamespaces.Current()
		s.awaitIndices(o.options, names)
	case now.changeCount == s.latestOpening:
		turn.Readiness = s.readiness
	default: // the opening has ended: its readiness never opens
	}
	return turn
}

// unfilledScopes returns the scopes whose indices are not filled yet; nil before the first opening.
func (s *scopes) unfilledScopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readiness == nil {
		return nil
	}
	return s.readiness.WaitingFor()
}

// AnnounceAssignments records the resources that are about to be served. All handlers wait for their indices, and the
// operator is not ready before all of them are served. It also records which kinds may own objects of the resources.
func (o *operator) AnnounceAssignments(
	_ context.Context, all []orchestration.Assignment, unanswered []discovery.Selector,
) {
	s := o.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordAnnounced(all, unanswered)
	for _, a := range all {
		if o.options.Children != nil && len(a.Parents) > 0 {
			o.options.Children.AddParents(a.Resource.GroupKind(), a.Parents)
		}
	}
	names, _ := s.servedNamespaces.Current()
	o.announceScopes(names, s.servedRanges)
}

// announceScopes reports the scopes of the assigned resources to the health and to the readiness. Nil namespaces are
// not known yet. The caller holds the lock.
func (o *operator) announceScopes(names []string, own *sharding.OwnRanges) {
	var serving, unknown []string
	for _, a := range o.scopes.assignments {
		serving = append(serving, scopesOf(a.Resource, names, watchedRanges(own, a.Handlers)...)...)
	}
	for _, selector := range o.scopes.unansweredSelectors {
		unknown = append(unknown, selector.String())
	}
	if names == nil {
		unknown = append(unknown, "namespaces")
	}
	o.health.AnnounceScopes(serving, unknown)
	// Scopes that Health has just made lack the refusals of their resource.
	for _, a := range o.scopes.assignments {
		if o.scopes.refusedResources[a.Resource.GroupResource()] {
			o.refuseScopes(a.Resource, names, own)
		}
	}
	o.scopes.awaitIndices(o.options, names)
}

// refuseResource records that a resource is not served in any namespace, until the next attempt to serve it.
func (o *operator) refuseResource(r discovery.Resource) {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	names, _ := o.scopes.servedNamespaces.Current()
	o.refuseScopes(r, names, o.scopes.servedRanges)
	o.scopes.recordRefusal(r, names)
}

// refuseScopes reports the scopes of a refused resource to the health. The caller holds the lock.
func (o *operator) refuseScopes(r discovery.Resource, names []string, own *sharding.OwnRanges) {
	ranges, _ := own.Current()
	for _, scope := range scopesOf(r, names, append(ranges, sharding.Range{})...) {
		o.health.Scope(scope).ReportRefused()
	}
}

// noteRemoved stops waiting for the indices of a resource that is not served any more.
func (o *operator) noteRemoved(r discovery.Resource) {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	names, _ := o.scopes.servedNamespaces.Current()
	o.scopes.stopAwaiting(r, names)
}

// namespacesOf returns the live set of namespaces for a resource. A new attempt to serve it begins here, so a former
// refusal is dropped.
func (o *operator) namespacesOf(r discovery.Resource) controller.Namespaces {
	o.scopes.mu.Lock()
	defer o.scopes.mu.Unlock()
	delete(o.scopes.refusedResources, r.GroupResource())
	return namespacesOf(r, o.scopes.servedNamespaces)
}

// namespacesOf returns the live set of namespaces for a resource. For a cluster-scoped resource, that is the one scope
// of the whole cluster, however the operator is restricted.
func namespacesOf(r discovery.Resource, all *namespaces.LiveNamespaces) controller.Namespaces {
	if !r.Namespaced {
		return namespaces.NewLive(namespaces.Everywhere)
	}
	return all
}

// watchedRanges returns the ranges of a kind whose watches are checked: the own ranges, and the range of all objects if
// a handler needs these.
func watchedRanges(own *sharding.OwnRanges, all []*adapters.HandlerChain) (watched []sharding.Range) {
	ranges, _ := own.Current()
	if own == nil {
		return ranges
	}
	if slices.ContainsFunc(all, func(h *adapters.HandlerChain) bool { return !h.Description.NeedsAllObjects() }) {
		watched = ranges
	}
	if slices.ContainsFunc(all, func(h *adapters.HandlerChain) bool { return h.Description.NeedsAllObjects() }) {
		watched = append(watched, sharding.Range{})
	}
	return watched
}

// scopesOf returns the names of a resource's scopes, as the health and the readiness know them.
func scopesOf(r discovery.Resource, names []string, ranges ...sharding.Range) (all []string) {
	if !r.Namespaced {
		names = []string{namespaces.Everywhere}
	}
	for _, namespace := range names {
		for _, one := range ranges {
			all = append(all, memory.KindScope{
				Resource: r.GroupResource(), Namespace: namespace, Range: one,
			}.String())
		}
	}
	return all
}

package reconcilers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// ledger has the resources that are served, or only indexed, and the readiness of their indices. It is part of the
// operator's scopes and of indexing; both use the lock of the scopes.
type ledger struct {
	readiness           *indexes.Readiness // of the indices; nil before the first opening of the gate
	announced           bool               // the fields below are known
	assignments         []orchestration.Assignment
	unansweredSelectors []discovery.Selector // selectors without an answer from the API server yet
	// resources that are not served, because checkIDs or a claim has failed
	refusedResources map[schema.GroupResource]bool
}

// recordAnnounced records the resources to serve, and the selectors that may match further ones.
func (l *ledger) recordAnnounced(all []orchestration.Assignment, unanswered []discovery.Selector) {
	l.announced, l.assignments, l.unansweredSelectors = true, all, unanswered
}

// awaitIndices makes handlers wait for the indices of the announced resources in these namespaces, and for selectors
// that may match further resources. Nil namespaces are not known yet, and are waited for as well. It does nothing
// before the first opening of the gate.
func (l *ledger) awaitIndices(o Options, names []string) {
	if l.readiness == nil || !l.announced {
		return
	}
	var filling, unknown []string
	for _, a := range l.assignments {
		if len(o.wholeIndices(a.Handlers)) > 0 && !l.refusedResources[a.Resource.GroupResource()] {
			filling = append(filling, scopesOf(a.Resource, names, sharding.Range{})...)
		}
	}
	for _, selector := range l.unansweredSelectors {
		if o.hasIndices(selector) {
			unknown = append(unknown, selector.String())
		}
	}
	// The namespaces are still unknown, so the listings to wait for are, too.
	if names == nil && slices.ContainsFunc(o.distinctSelectors(), o.hasIndices) {
		unknown = append(unknown, "namespaces")
	}
	l.readiness.UpdateKinds(filling, unknown)
}

// recordRefusal records that a resource is not served in any namespace, until the next attempt to serve it.
func (l *ledger) recordRefusal(r discovery.Resource, names []string) {
	l.refusedResources[r.GroupResource()] = true
	l.stopAwaiting(r, names)
}

// stopAwaiting stops waiting for the indices of a resource that is not served: handlers would wait for ever.
func (l *ledger) stopAwaiting(r discovery.Resource, names []string) {
	for _, scope := range scopesOf(r, names, sharding.Range{}) {
		l.readiness.MarkIndexed(scope)
	}
}

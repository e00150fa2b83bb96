package reconcilers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// ledger has the resources that are served, or only indexed. The lock of the operator's scopes guards it.
type ledger struct {
	readiness  *indexes.Readiness // of their indices; nil before the first opening of the gate
	announced  bool
	assigned   []orchestration.Assignment
	unanswered []discovery.Selector
	refused    map[schema.GroupResource]bool
}

// announce records the resources to serve, and the selectors that may mean more.
func (l *ledger) announce(all []orchestration.Assignment, unanswered []discovery.Selector) {
	l.announced, l.assigned, l.unanswered = true, all, unanswered
}

// awaitIndices has handlers wait for the indices of the announced resources in these namespaces, once the gate has been
// open, and for the selectors that may mean further ones. Nil namespaces are not known yet.
func (l *ledger) awaitIndices(o Options, names []string) {
	if l.readiness == nil || !l.announced {
		return
	}
	var filling, unknown []string
	for _, a := range l.assigned {
		if len(adapters.ByFamily(a.Handlers).Indexing) > 0 && !l.refused[a.Resource.GroupResource()] {
			filling = append(filling, scopesOf(a.Resource, names)...)
		}
	}
	for _, selector := range l.unanswered {
		if o.indexes(selector) {
			unknown = append(unknown, selector.String())
		}
	}
	if names == nil && slices.ContainsFunc(o.selectors(), o.indexes) {
		unknown = append(unknown, "namespaces")
	}
	l.readiness.Begin(filling, unknown)
}

// refuse notes that a resource is not served in any namespace, until it is tried again.
func (l *ledger) refuse(r discovery.Resource, names []string) {
	l.refused[r.GroupResource()] = true
	l.without(r, names)
}

// without is for a resource that is not served: handlers must not wait for its indices.
func (l *ledger) without(r discovery.Resource, names []string) {
	for _, scope := range scopesOf(r, names) {
		l.readiness.Done(scope)
	}
}

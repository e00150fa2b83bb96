package reconcilers

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

var _ journal.Live = (*operator)(nil)

// Standing tells the journal how the operator is now, whenever somebody asks that. The API server is never asked for
// it.
func (o *operator) Standing() journal.Standing {
	s := journal.Standing{
		Operator: o.options.Name, Running: o.running.Load(), Paused: !o.options.Gate.Open(),
		PausedNamespaces: o.options.Gate.pausedNamespaces(), Waiting: o.scopes.waiting(),
	}
	assigned, known := o.scopes.served()
	if !known {
		return s // the cluster was not asked yet, so nobody knows what it lacks
	}
	for _, a := range assigned {
		s.Kinds = append(s.Kinds, o.servedKind(a))
	}
	for _, r := range o.options.Registrations {
		if h := r.Handler; h.Follows() && !slices.ContainsFunc(assigned, func(a orchestration.Assignment) bool {
			return slices.ContainsFunc(a.Handlers, func(own *adapters.Handler) bool { return own.Description == h })
		}) {
			s.Absent = append(s.Absent, journal.Absent{Handler: h.ID, Selector: r.Selector.String()})
		}
	}
	return s
}

// servedKind is one kind with all its handlers, and what runs in the background for its objects.
func (o *operator) servedKind(a orchestration.Assignment) journal.Served {
	own := make([]*handlers.Handler, 0, len(a.Handlers))
	for _, h := range a.Handlers {
		own = append(own, h.Description)
	}
	served := o.controllers.JournalOf(a.Resource, a.Handlers).Served(a.Resource, own)
	names, _ := namespacesOf(a.Resource, o.scopes.live).Current()
	served.Namespaces = append(served.Namespaces, names...)
	served.Background = map[string]int{}
	for scope, kept := range o.controllers.Memory.All() {
		if scope.Resource == a.Resource.GroupResource() {
			for one, count := range kept.Background.Census() {
				served.Background[string(one.Doing)] += count
			}
		}
	}
	return served
}

// served is what is assigned by now, if that is known.
func (s *scopes) served() (assigned []orchestration.Assignment, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.assigned), s.announced
}

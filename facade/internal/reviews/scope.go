package reviews

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// scope returns the namespaces whose objects are reviewed. By default, the operator's own one is not among them: while
// the operator is down, its handlers would refuse what is needed to start it.
func (a *ReviewSettings) scope(served defaults.NamespaceScope, asKopf bool) *namespaces.Scope {
	scope := &namespaces.Scope{Served: served.Patterns(), NamedOnly: served.NamedOnly}
	for _, text := range a.ExcludedNamespaces {
		scope.Excluded = append(scope.Excluded, namespaces.Parse(text))
	}
	own := a.ownNamespace()
	isNamed := slices.Contains(served.Names, own)
	if a.ExcludedNamespaces == nil && own != "" && !isNamed && !asKopf {
		scope.Excluded = namespaces.Patterns{namespaces.Parse(own)}
	}
	return scope
}

// ownNamespace is where the operator runs: that of its Service, or of the pod; empty outside of a cluster.
func (a *ReviewSettings) ownNamespace() string {
	if service, _, err := a.service(); err == nil && service.Namespace != "" {
		return service.Namespace
	}
	return connection.PodNamespace()
}

package kopf

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// judged are the namespaces whose objects handlers of admission are asked about. By default, the operator's own one is
// not among them: while the operator is down, its handlers would refuse what is needed to start it.
func (s *Settings) judged(a *AdmissionSettings) *namespaces.Scope {
	scope := &namespaces.Scope{Served: s.patterns(), NamedOnly: s.ScanningDisabled}
	for _, text := range a.ExcludedNamespaces {
		scope.Excluded = append(scope.Excluded, namespaces.Parse(text))
	}
	own := a.ownNamespace()
	isNamed := slices.Contains(s.Namespaces, own)
	if a.ExcludedNamespaces == nil && own != "" && !isNamed && !s.Persistence.KopfFormats {
		scope.Excluded = namespaces.Patterns{namespaces.Parse(own)}
	}
	return scope
}

// ownNamespace is where the operator runs: that of its Service, or of the pod; empty outside of a cluster.
func (a *AdmissionSettings) ownNamespace() string {
	if service, _, err := a.service(); err == nil && service.Namespace != "" {
		return service.Namespace
	}
	return connection.PodNamespace()
}

package namespaces

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// ServedNamespaces is the set of served namespaces. It is not safe for concurrent use.
type ServedNamespaces struct {
	patterns Patterns
	names    map[string]struct{}
}

// NewServed returns an empty set for the namespaces that the patterns match.
func NewServed(patterns ...NamespacePattern) *ServedNamespaces {
	return &ServedNamespaces{patterns: patterns, names: map[string]struct{}{}}
}

// Names returns the members, sorted.
func (s *ServedNamespaces) Names() []string { return slices.Sorted(maps.Keys(s.names)) }

// HasName reports whether the namespace is a member.
func (s *ServedNamespaces) HasName(name string) bool {
	_, has := s.names[name]
	return has
}

// ApplyEvent applies one event. A terminating namespace stays a member until its content is deleted, so that deletion
// handlers of its objects can finish.
func (s *ServedNamespaces) ApplyEvent(event watch.EventType, object map[string]any) {
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	switch {
	case isContentGone(event, object):
		delete(s.names, name)
	case s.patterns.MatchesName(name):
		s.names[name] = struct{}{}
	}
}

// isContentGone reports whether a namespace has no content left. This is Kopf's rule: no condition is "True", and the
// namespace is deleted, or is terminating with at least one condition. Conditions such as NamespaceContentRemaining are
// "True" while there is content. Unlike Kopf, a deletion event always counts.
func isContentGone(event watch.EventType, object map[string]any) bool {
	if event == watch.Deleted {
		return true
	}
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, one := range conditions {
		// Something remains, or could not be deleted.
		if condition, ok := one.(map[string]any); ok && condition["status"] == "True" {
			return false
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	// Without conditions, the namespace controller has not examined the content yet.
	return metadata["deletionTimestamp"] != nil && len(conditions) > 0
}

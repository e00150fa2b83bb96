package namespaces

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// Served is the set of the namespaces that are served. It is not for concurrent use.
type Served struct {
	patterns Patterns
	names    map[string]struct{}
}

// NewServed makes an empty set for the namespaces that the patterns match.
func NewServed(patterns ...Pattern) *Served {
	return &Served{patterns: patterns, names: map[string]struct{}{}}
}

// Names are those of the set, sorted.
func (s *Served) Names() []string { return slices.Sorted(maps.Keys(s.names)) }

// Has tells whether the namespace is one of them.
func (s *Served) Has(name string) bool {
	_, has := s.names[name]
	return has
}

// List takes over what a listing of all namespaces has: what is not among them is gone.
func (s *Served) List(objects []map[string]any) {
	listed := map[string]struct{}{}
	for _, object := range objects {
		if name := nameOf(object); s.patterns.Matches(name) && !gone(watch.Added, object) {
			listed[name] = struct{}{}
		}
	}
	s.names = listed
}

// Observe takes over what an event tells. A namespace that ends is served until its content is gone, so that its
// objects can finish.
func (s *Served) Observe(event watch.EventType, object map[string]any) {
	name := nameOf(object)
	switch {
	case gone(event, object):
		delete(s.names, name)
	case s.patterns.Matches(name):
		s.names[name] = struct{}{}
	}
}

// gone tells whether nothing is left in a namespace: it is not there any more, or its conditions tell so.
func gone(event watch.EventType, object map[string]any) bool {
	if event == watch.Deleted {
		return true
	}
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, one := range conditions {
		if condition, ok := one.(map[string]any); ok && condition["status"] == "True" {
			return false
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	return metadata["deletionTimestamp"] != nil && len(conditions) > 0
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

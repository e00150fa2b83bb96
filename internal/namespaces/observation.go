package namespaces

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// lingerTime is how long a namespace is still served after its deletion. The last events of its objects can arrive
// later than the event of the namespace, because they come from other watches.
const lingerTime = 5 * time.Second

// observation tracks the namespaces that one informer delivers. Its methods run on the goroutines of the informer and
// of timers.
type observation struct {
	mu      sync.Mutex
	served  *ServedNamespaces
	leaving map[string]*time.Timer // deleted namespaces that are still served
	begun   bool                   // the first listing is complete
	ended   bool                   // later events and timers are ignored
	report  func(names []string)   // called with the lock held, so one call at a time
}

var _ toolscache.ResourceEventHandler = (*observation)(nil)

// startReporting reports the names for the first time, after the first listing. Earlier events only collect them: a
// partial list would stop controllers of namespaces that are not listed yet.
func (o *observation) startReporting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	o.reportNames()
}

// stopReporting stops all reports. A timer that is already running finds ended set.
func (o *observation) stopReporting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, timer := range o.leaving {
		timer.Stop()
	}
}

// OnAdd runs for each listed or created namespace.
func (o *observation) OnAdd(object any, _ bool) { o.applyEvent(watch.Added, object) }

// OnUpdate runs for each change of a namespace.
func (o *observation) OnUpdate(_, object any) { o.applyEvent(watch.Modified, object) }

// OnDelete runs for each deleted namespace. The informer delivers a tombstone if it missed the deletion itself.
func (o *observation) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	o.applyEvent(watch.Deleted, object)
}

// applyEvent applies one event, and reports the names if they have changed.
func (o *observation) applyEvent(event watch.EventType, object any) {
	namespace, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	name := namespace.GetName()
	was := o.served.HasName(name)
	o.served.ApplyEvent(event, namespace.Object)
	switch is := o.served.HasName(name); {
	// The namespace is still reported, until its timer fires.
	case was && !is && o.begun:
		o.leaving[name] = time.AfterFunc(lingerTime, func() { o.removeLingering(name) })
	// A namespace of that name was created again in time.
	case is && o.leaving[name] != nil:
		o.leaving[name].Stop()
		delete(o.leaving, name)
	case was == is:
		return
	}
	o.reportNames()
}

// removeLingering removes a namespace after its delay, unless it was created again.
func (o *observation) removeLingering(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.served.HasName(name) {
		return
	}
	delete(o.leaving, name)
	o.reportNames()
}

// reportNames reports the names that are served, including deleted ones that still linger. The caller holds the lock.
func (o *observation) reportNames() {
	if !o.begun || o.ended {
		return
	}
	names := o.served.Names()
	for name := range o.leaving {
		names = append(names, name)
	}
	slices.Sort(names)
	o.report(names)
}

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

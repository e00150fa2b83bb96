package memapi

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CollectGarbage turns on garbage collection: objects whose owners were deleted are deleted too, as by
// kube-controller-manager. Background, foreground and orphaning deletions are supported. A collection runs this long
// after each relevant change. With 0, it runs before the request that caused it is answered. Without this call, nothing
// is collected.
func (s *Server) CollectGarbage(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collector = &collector{delay: after}
	// Garbage may exist already.
	s.scheduleCollection()
}

// collector holds the state of the garbage collection.
type collector struct {
	delay       time.Duration
	isScheduled bool // a run is scheduled or in progress
}

// collectIfNeeded schedules a collection if a change can produce garbage. A collection in progress causes changes
// itself; it repeats until nothing changes, so these do not schedule another one.
func (s *Server) collectIfNeeded(before, after map[string]any) {
	switch {
	case s.collector == nil || s.collector.isScheduled:
	// Only deletions, and changes of objects with owners, can produce garbage.
	case after == nil, metadataOf(after)["ownerReferences"] != nil, isBeingDeleted(after),
		before != nil && metadataOf(before)["ownerReferences"] != nil:
		s.scheduleCollection()
	}
}

// scheduleCollection runs a collection, now or after the delay.
func (s *Server) scheduleCollection() {
	s.collector.isScheduled = true
	if s.collector.delay == 0 {
		s.collectAll()
		return
	}
	// The timer runs in the bubble of the test, so the delay is virtual.
	time.AfterFunc(s.collector.delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.collectAll()
	})
}

// collectAll processes all objects, and repeats that until nothing changes any more.
func (s *Server) collectAll() {
	for more := true; more; {
		more = false
		for _, t := range s.allButEvents() {
			// A previous step may have removed the object.
			if object, ok := s.objects[t.groupResource()][t.objectKey()]; ok {
				more = s.collectObject(t, object) || more
			}
		}
	}
	s.collector.isScheduled = false
}

// allButEvents returns all stored objects in a fixed order, except for Kubernetes events.
func (s *Server) allButEvents() []target { return s.allTargets(false) }

// allTargets returns all stored objects in a fixed order, each once, although several versions may serve it. Changes to
// them are attributed to kube-controller-manager.
func (s *Server) allTargets(withEvents bool) []target {
	var all []target
	seen := map[schema.GroupResource]bool{}
	for _, r := range s.resources {
		// Events are skipped unless requested: there are many of them, and they usually do not have owners.
		if seen[r.groupResource()] || r.Plural == "events" && !withEvents {
			continue
		}
		seen[r.groupResource()] = true
		for _, object := range s.objects[r.groupResource()] {
			namespace, _ := metadataOf(object)["namespace"].(string)
			name, _ := metadataOf(object)["name"].(string)
			t := s.newTarget(r, namespace, name)
			t.manager = "kube-controller-manager"
			all = append(all, t)
		}
	}
	// The order must not depend on the iteration of maps, or a run in virtual time could not be repeated.
	slices.SortFunc(all, func(a, b target) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural), cmp.Compare(a.objectKey(), b.objectKey()),
		)
	})
	return all
}

// collectObject collects one object if that is due, and reports whether it changed anything.
func (s *Server) collectObject(t target, object map[string]any) bool {
	dying := isBeingDeleted(object)
	switch {
	case dying && hasFinalizer(object, metav1.FinalizerOrphanDependents):
		for _, one := range s.dependentsOf(object) {
			// The dependents survive, but without a reference to this owner.
			s.removeReferences(one, func(ref map[string]any) bool { return ref["uid"] != metadataOf(object)["uid"] })
		}
		s.removeFinalizer(t, metav1.FinalizerOrphanDependents)
		return true
	case dying && hasFinalizer(object, metav1.FinalizerDeleteDependents):
		// A foreground deletion waits for the dependents that block it.
		if slices.ContainsFunc(s.dependentsOf(object), func(one target) bool { return s.blocksDeletion(one, object) }) {
			return false
		}
		s.removeFinalizer(t, metav1.FinalizerDeleteDependents)
		return true
	case dying:
		return false
	default:
		return s.collectDependent(t, object)
	}
}

// collectDependent deletes an object, or removes references from it, depending on the state of its owners. It reports
// whether it changed anything.
func (s *Server) collectDependent(t target, object map[string]any) bool {
	standing := map[any]ownership{}
	count := map[ownership]int{}
	for _, ref := range referencesOf(object) {
		// Owners are identified by their uid.
		standing[ref["uid"]] = s.ownerState(t, ref)
		count[standing[ref["uid"]]]++
	}
	policy := metav1.DeletePropagationBackground
	// The cases are those of the garbage collector of kube-controller-manager.
	switch gone := count[ownerDangling] + count[ownerWaiting]; {
	case count[ownerUnknown] > 0, gone == 0:
		return false
	case count[ownerSolid] > 0:
		// At least one owner exists, so only the references to missing owners are removed.
		s.removeReferences(t, func(ref map[string]any) bool { return standing[ref["uid"]] == ownerSolid })
		return true
	case count[ownerWaiting] > 0 && len(s.dependentsOf(object)) > 0:
		policy = metav1.DeletePropagationForeground
		// The owner waits for this object, which has dependents of its own: they are deleted in the foreground, too.
		s.unblockOwners(t, object)
	default:
		// An earlier deletion may have chosen a policy, which is stored as a finalizer.
		if hasFinalizer(object, metav1.FinalizerOrphanDependents) {
			policy = metav1.DeletePropagationOrphan
		} else if hasFinalizer(object, metav1.FinalizerDeleteDependents) {
			policy = metav1.DeletePropagationForeground
		}
	}
	// A failed deletion did not change anything.
	_, err := s.deleteObject(t, &metav1.DeleteOptions{PropagationPolicy: &policy})
	return err == nil
}

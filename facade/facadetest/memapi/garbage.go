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
	s.collector = &delayedWork{delay: after}
	// Garbage may exist already.
	s.scheduleCollection()
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

// ownership is the state of the owner in an owner reference.
type ownership int

const (
	ownerUnknown  ownership = iota // its kind is not served, or it cannot be an owner: do nothing
	ownerSolid                     // it exists
	ownerDangling                  // it does not exist, or another object has its name
	ownerWaiting                   // it is being deleted, and waits for its dependents
)

// ownerState returns the state of an owner. A namespaced owner is in the namespace of its dependent.
func (s *Server) ownerState(t target, ref map[string]any) ownership {
	r, err := s.resourceOf(ref)
	if err != nil {
		return ownerUnknown
	}
	name, _ := ref["name"].(string)
	owner := s.newTarget(r, "", name)
	// A cluster-scoped object cannot have a namespaced owner.
	if r.Namespaced {
		if t.namespace == "" {
			return ownerUnknown
		}
		owner.namespace = t.namespace
	}
	object, ok := s.objects[owner.groupResource()][owner.objectKey()]
	// A new object with the same name is not the owner.
	if !ok || metadataOf(object)["uid"] != ref["uid"] {
		return ownerDangling
	}
	// Only a foreground deletion makes the owner wait.
	if isBeingDeleted(object) && hasFinalizer(object, metav1.FinalizerDeleteDependents) {
		return ownerWaiting
	}
	return ownerSolid
}

// referencesOf returns the owner references of an object. The maps are those of the object, not copies.
func referencesOf(object map[string]any) []map[string]any {
	var all []map[string]any
	items, _ := metadataOf(object)["ownerReferences"].([]any)
	for _, item := range items {
		if ref, ok := item.(map[string]any); ok {
			all = append(all, ref)
		}
	}
	return all
}

// dependentsOf returns all objects with an owner reference to the given object. It scans all objects; test clusters are
// small.
func (s *Server) dependentsOf(owner map[string]any) []target {
	uid := metadataOf(owner)["uid"]
	return slices.DeleteFunc(s.allButEvents(), func(t target) bool {
		return !slices.ContainsFunc(referencesOf(s.objects[t.groupResource()][t.objectKey()]),
			func(ref map[string]any) bool {
				return ref["uid"] == uid
			})
	})
}

// blocksDeletion reports whether the deletion of the owner in the foreground must wait for the dependent.
func (s *Server) blocksDeletion(t target, owner map[string]any) bool {
	return slices.ContainsFunc(referencesOf(s.objects[t.groupResource()][t.objectKey()]),
		func(ref map[string]any) bool {
			return ref["uid"] == metadataOf(owner)["uid"] && ref["blockOwnerDeletion"] == true
		})
}

// unblockOwners clears blockOwnerDeletion of an object whose own dependents wait for their dependents. Such a circle of
// owners would never be deleted otherwise.
func (s *Server) unblockOwners(t target, object map[string]any) {
	inCircle := slices.ContainsFunc(s.dependentsOf(object), func(one target) bool {
		dependent := s.objects[one.groupResource()][one.objectKey()]
		return isBeingDeleted(dependent) && hasFinalizer(dependent, metav1.FinalizerDeleteDependents)
	})
	if !inCircle {
		return
	}
	// The reference remains, but it no longer blocks the owner.
	s.editObject(t, func(object map[string]any) {
		for _, ref := range referencesOf(object) {
			ref["blockOwnerDeletion"] = false
		}
	})
}

// removeReferences removes owner references from an object. It keeps those for which keep returns true.
func (s *Server) removeReferences(t target, keep func(ref map[string]any) bool) {
	s.editObject(t, func(object map[string]any) {
		kept := []any{}
		for _, ref := range referencesOf(object) {
			if keep(ref) {
				kept = append(kept, ref)
			}
		}
		metadataOf(object)["ownerReferences"] = kept
	})
}

// removeFinalizer removes a finalizer from an object.
func (s *Server) removeFinalizer(t target, finalizer string) {
	s.editObject(t, func(object map[string]any) {
		finalizers, _ := metadataOf(object)["finalizers"].([]any)
		metadataOf(object)["finalizers"] = slices.DeleteFunc(
			slices.Clone(finalizers), func(one any) bool { return one == finalizer },
		)
	})
}

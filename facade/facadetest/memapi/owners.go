package memapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	r, isServed := s.resourceOf(ref)
	if !isServed {
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

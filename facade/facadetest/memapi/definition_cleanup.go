package memapi

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// cleanupFinalizer protects a definition that is being deleted while objects of its kind exist. Its name must equal
// that of the real server.
const cleanupFinalizer = apiextensionsv1.CustomResourceCleanupFinalizer

// managesDefinition reports whether the target is a definition and definitions are deleted together with their objects.
func (s *Server) managesDefinition(t target) bool {
	return s.namespaces != nil && t.groupResource() == definitionsResource.groupResource()
}

// withCleanup returns the finalizers of an object that is about to be deleted, with the cleanup finalizer if it is a
// definition that still has objects.
func (s *Server) withCleanup(t target, object map[string]any, held []any) []any {
	crd, err := definitionOf(t, object)
	// The finalizer is added at most once, when the deletion starts.
	isNeeded := s.managesDefinition(t) && err == nil && !isBeingDeleted(object) &&
		len(s.objects[servedAs(crd)]) > 0 && !slices.Contains(held, any(cleanupFinalizer))
	if !isNeeded {
		return held
	}
	return append(slices.Clone(held), cleanupFinalizer)
}

// emptyDefinitions deletes the objects of definitions that are being deleted. It removes the finalizer of definitions
// without objects, so that they disappear if this was their last one.
func (s *Server) emptyDefinitions() {
	t := s.newTarget(definitionsResource, "", "")
	for _, object := range s.objectsWith(t, isBeingDeleted) {
		crd, err := definitionOf(t, object)
		if err == nil && hasFinalizer(object, cleanupFinalizer) &&
			s.deleteAll(func(one target) bool { return one.groupResource() == servedAs(crd) }) {
			s.removeFinalizer(s.newTarget(definitionsResource, "", crd.Name), cleanupFinalizer)
		}
	}
}

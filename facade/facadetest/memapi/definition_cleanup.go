package memapi

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	isNeeded := s.managesDefinition(t) && err == nil && metadataOf(object)["deletionTimestamp"] == nil &&
		len(s.objects[servedAs(crd)]) > 0 && !slices.Contains(held, any(cleanupFinalizer))
	if !isNeeded {
		return held
	}
	return append(slices.Clone(held), cleanupFinalizer)
}

// emptyDefinitions deletes the objects of definitions that are being deleted. It removes the finalizer of definitions
// without objects, so that they disappear.
func (s *Server) emptyDefinitions() {
	background := metav1.DeletePropagationBackground
	for _, object := range s.objects[definitionsResource.groupResource()] {
		name, _ := metadataOf(object)["name"].(string)
		t := s.newTarget(definitionsResource, "", name)
		crd, err := definitionOf(t, object)
		held, _ := metadataOf(object)["finalizers"].([]any)
		if err != nil || metadataOf(object)["deletionTimestamp"] == nil ||
			!slices.Contains(held, any(cleanupFinalizer)) {
			continue
		}
		// An object with finalizers remains, and the definition with it. The next deletion of an object schedules
		// another attempt.
		for _, one := range s.allTargets(true) {
			if one.groupResource() == servedAs(crd) {
				_, _ = s.deleteObject(one, &metav1.DeleteOptions{PropagationPolicy: &background}) // retried later
			}
		}
		if len(s.objects[servedAs(crd)]) > 0 {
			continue
		}
		// The definition disappears if this was its last finalizer.
		s.editObject(t, func(object map[string]any) {
			metadataOf(object)["finalizers"] = slices.DeleteFunc(slices.Clone(held), func(one any) bool {
				return one == cleanupFinalizer
			})
		})
	}
}

package memapi

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ManageNamespaces makes namespaces behave as in a cluster. Objects can only be created in a namespace that exists and
// is not being deleted. A new namespace gets the service account "default". A deleted namespace is emptied after the
// delay, waits for the finalizers of its objects, and disappears. A deleted definition and its objects are handled in
// the same way.
// By default, a namespace need not exist, and its objects remain when it is deleted. The objects of a deleted
// definition vanish without an event.
func (s *Server) ManageNamespaces(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces = &delayedWork{delay: delay}
}

// managesNamespace reports whether the target is a namespace that is deleted in two steps.
func (s *Server) managesNamespace(t target) bool {
	return s.namespaces != nil && t.Group == "" && t.Plural == "namespaces"
}

// admitNamespace refuses the creation of an object in a namespace that does not exist or is being deleted.
func (s *Server) admitNamespace(t target) error {
	if s.namespaces == nil || t.namespace == "" {
		return nil
	}
	namespace, exists := s.objects[schema.GroupResource{Resource: "namespaces"}]["/"+t.namespace]
	// A missing namespace is "not found" for the namespace, not for the object.
	switch {
	case !exists:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, t.namespace)
	case isBeingDeleted(namespace):
		// Clients recognize this error by its cause, not by its message.
		refused := apierrors.NewForbidden(t.qualifiedName(), t.name, fmt.Errorf(
			"unable to create new content in namespace %s because it is being terminated", t.namespace,
		))
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
			Message: fmt.Sprintf("namespace %s is being terminated", t.namespace),
		})
		return refused
	default:
		return nil
	}
}

// beginNamespace adds the phase, the finalizer and the name label of a new namespace, as the real server does.
func (s *Server) beginNamespace(t target, object map[string]any) {
	if !s.managesNamespace(t) {
		return
	}
	name, _ := metadataOf(object)["name"].(string)
	object["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
	object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
	labels, ok := metadataOf(object)["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metadataOf(object)["labels"] = labels
	}
	// Selectors use this label to select namespaces by name.
	labels[corev1.LabelMetadataName] = name
}

// terminateNamespace starts the deletion of a namespace. It returns false if the target is not a managed namespace, or
// is one without remaining content; the caller then deletes it like any other object.
func (s *Server) terminateNamespace(t target, before map[string]any) (shown map[string]any, ok bool) {
	held, _, _ := unstructured.NestedSlice(before, "spec", "finalizers")
	switch {
	case !s.managesNamespace(t), len(held) == 0:
		return nil, false
	case isBeingDeleted(before):
		return t.servedObject(before), true
	}
	object := cloneObject(before)
	// The finalizer in the spec holds the namespace from now on.
	metadataOf(object)["deletionTimestamp"] = currentTimestamp()
	object["status"] = map[string]any{"phase": string(corev1.NamespaceTerminating)}
	s.setResourceVersion(t, metadataOf(object))
	s.storeObject(t, before, object)
	return t.servedObject(object), true
}

// keepNamespaces reacts to a change: it creates the service account of a new namespace, and schedules the emptying of
// namespaces and definitions.
func (s *Server) keepNamespaces(t target, before, after map[string]any) {
	switch {
	case s.namespaces == nil:
	case s.managesNamespace(t) && before == nil:
		accounts, ok := s.findResource(schema.GroupVersion{Version: "v1"}, "serviceaccounts")
		if account := s.newTarget(accounts, t.name, "default"); ok {
			_, _ = s.createObject(account, []byte(`{"metadata":{"name":"default"}}`)) // an existing account is kept
		}
	// Each deletion can be the last one that a namespace or a definition waits for.
	case after == nil,
		(s.managesNamespace(t) || s.managesDefinition(t)) && isBeingDeleted(after):
		if s.namespaces.isScheduled {
			return
		}
		s.namespaces.isScheduled = true
		// One timer is enough for all namespaces and definitions that are being deleted.
		time.AfterFunc(s.namespaces.delay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			// The flag is reset first: the deletions below may schedule the next run.
			s.namespaces.isScheduled = false
			s.emptyNamespaces()
			s.emptyDefinitions()
		})
	}
}

// emptyNamespaces deletes the objects of namespaces that are being deleted, and releases the empty namespaces.
func (s *Server) emptyNamespaces() {
	found, _ := s.findResource(schema.GroupVersion{Version: "v1"}, "namespaces")
	for _, object := range s.objectsWith(s.newTarget(found, "", ""), isBeingDeleted) {
		name, _ := metadataOf(object)["name"].(string)
		// The finalizer in the spec holds the namespace; without it, the deletion completes.
		if s.deleteAll(func(t target) bool { return t.namespace == name }) {
			s.editObject(s.newTarget(found, "", name), func(object map[string]any) {
				unstructured.RemoveNestedField(object, "spec", "finalizers")
			})
		}
	}
}

// deleteAll deletes the objects for which isInside returns true, and reports whether all of them are gone. Objects with
// finalizers remain; their next deletion schedules another attempt. Events are deleted as well, unlike by the garbage
// collection.
func (s *Server) deleteAll(isInside func(t target) bool) bool {
	background, remaining := metav1.DeletePropagationBackground, 0
	for _, t := range s.allTargets(true) {
		if !isInside(t) {
			continue
		}
		_, err := s.deleteObject(t, &metav1.DeleteOptions{PropagationPolicy: &background})
		if _, remains := s.objects[t.groupResource()][t.objectKey()]; remains || err != nil {
			remaining++
		}
	}
	return remaining == 0
}

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

// namespaceKeeper is the state of [Server.ManageNamespaces].
type namespaceKeeper struct {
	delay     time.Duration
	scheduled bool // a run is ahead
}

// ManageNamespaces makes namespaces behave as in a cluster: objects can be created only in a namespace that exists and
// is not being deleted, a new namespace gets the service account "default", and a deleted namespace is emptied, waits
// for the finalizers of its objects, and then goes. So does a deleted definition with its objects. The emptying begins
// after the delay. By default, a namespace need not exist, and leaves its objects when it is deleted; the objects of a
// definition vanish with it, without an event.
func (s *Server) ManageNamespaces(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces = &namespaceKeeper{delay: delay}
}

// managesNamespace is true for namespaces that go in two steps.
func (s *Server) managesNamespace(t target) bool {
	return s.namespaces != nil && t.Group == "" && t.Plural == "namespaces"
}

// admitNamespace refuses an object that is created where it may not be.
func (s *Server) admitNamespace(t target) error {
	if s.namespaces == nil || t.namespace == "" {
		return nil
	}
	namespace, exists := s.objects[schema.GroupResource{Resource: "namespaces"}]["/"+t.namespace]
	switch {
	case !exists:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, t.namespace)
	case metadataOf(namespace)["deletionTimestamp"] != nil:
		refused := apierrors.NewForbidden(t.qualified(), t.name, fmt.Errorf(
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

// beginNamespace completes a namespace that is about to be stored for the first time.
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
	labels[corev1.LabelMetadataName] = name
}

// terminate begins the deletion of a namespace. It reports false if the namespace may go as other objects do.
func (s *Server) terminate(t target, before map[string]any) (shown map[string]any, ok bool) {
	held, _, _ := unstructured.NestedSlice(before, "spec", "finalizers")
	switch {
	case !s.managesNamespace(t), len(held) == 0:
		return nil, false
	case metadataOf(before)["deletionTimestamp"] != nil:
		return t.shown(before), true
	}
	object := cloned(before)
	metadataOf(object)["deletionTimestamp"] = timestamp()
	object["status"] = map[string]any{"phase": string(corev1.NamespaceTerminating)}
	s.stamp(t, metadataOf(object))
	s.keep(t, before, object)
	return t.shown(object), true
}

// keepNamespaces follows a change: it schedules the emptying of namespaces and completes new ones.
func (s *Server) keepNamespaces(t target, before, after map[string]any) {
	switch {
	case s.namespaces == nil:
	case s.managesNamespace(t) && before == nil:
		accounts, ok := s.find(schema.GroupVersion{Version: "v1"}, "serviceaccounts")
		if account := s.target(accounts, t.name, "default"); ok {
			_, _ = s.create(account, []byte(`{"metadata":{"name":"default"}}`)) // it may exist: then it is kept
		}
	case after == nil,
		(s.managesNamespace(t) || s.managesDefinition(t)) && metadataOf(after)["deletionTimestamp"] != nil:
		if s.namespaces.scheduled {
			return
		}
		s.namespaces.scheduled = true
		time.AfterFunc(s.namespaces.delay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.namespaces.scheduled = false
			s.emptyNamespaces()
			s.emptyDefinitions()
		})
	}
}

// emptyNamespaces deletes the content of namespaces that are being deleted, and lets the empty ones go.
func (s *Server) emptyNamespaces() {
	leaving := map[string]int{}
	for key, object := range s.objects[schema.GroupResource{Resource: "namespaces"}] {
		if metadataOf(object)["deletionTimestamp"] != nil {
			leaving[key[1:]] = 0
		}
	}
	if len(leaving) == 0 {
		return
	}
	background := metav1.DeletePropagationBackground
	for _, t := range s.all(true) {
		if _, ok := leaving[t.namespace]; !ok || t.namespace == "" {
			continue
		}
		_, err := s.delete(t, &metav1.DeleteOptions{PropagationPolicy: &background})
		if _, remains := s.objects[t.groupResource()][t.key()]; remains || err != nil {
			leaving[t.namespace]++
		}
	}
	found, _ := s.find(schema.GroupVersion{Version: "v1"}, "namespaces")
	for name, remaining := range leaving {
		if remaining > 0 {
			continue
		}
		s.edit(s.target(found, "", name), func(object map[string]any) {
			unstructured.RemoveNestedField(object, "spec", "finalizers")
		})
	}
}

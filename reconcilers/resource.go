package reconcilers

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a kind that the API server serves.
type Resource struct {
	schema.GroupVersionKind
	Plural            string
	Namespaced        bool
	StatusSubresource bool
}

// GroupResource is what all versions of the resource have in common: their objects are the same.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource is where its objects are.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// unservedError is what the API server's list says by what is in it, and what is not.
type unservedError struct{ reason string }

// Error is the reason.
func (e *unservedError) Error() string { return e.reason }

// unserved tells a kind that is not there from a server that did not answer.
func unserved(err error) bool {
	var missing *unservedError
	return errors.As(err, &missing) || apierrors.IsNotFound(err)
}

// resolve finds the resource that a selector means among those of its group and version.
func resolve(s Selector, list *metav1.APIResourceList, writes bool) (meaning, error) {
	var found []metav1.APIResource
	for _, r := range list.APIResources {
		if s.matches(r) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0:
		return meaning{}, &unservedError{fmt.Sprintf("%s has no resource named %q", s.GroupVersion, s.Kind+s.Name)}
	case len(found) > 1:
		var ambiguous []Resource
		for _, r := range found {
			ambiguous = append(ambiguous, s.resource(r, list))
		}
		return meaning{ambiguous: ambiguous}, &unservedError{
			fmt.Sprintf("%s is ambiguous: it may be %q or %q", s, found[0].Name, found[1].Name),
		}
	}
	for _, verb := range needed(writes && !leaving(found[0].Verbs)) {
		if !slices.Contains(found[0].Verbs, verb) {
			return meaning{}, &unservedError{fmt.Sprintf("%s cannot be handled: it does not support %q", s, verb)}
		}
	}
	return meaning{served: []Resource{s.resource(found[0], list)}}, nil
}

// needed are the verbs without which a resource cannot be handled.
func needed(writes bool) []string {
	verbs := []string{"list", "watch"}
	if writes {
		verbs = append(verbs, "patch")
	}
	return verbs
}

// leaving tells a kind whose CRD is being deleted: nothing is to be made or changed any more, say the API server's
// lists. But it takes patches still, and the CRD waits for the objects, which wait for their finalizers.
func leaving(verbs []string) bool {
	can := func(verb string) bool { return slices.Contains(verbs, verb) }
	return can("delete") && can("deletecollection") && can("list") && can("watch") && !can("create") &&
		!can("update") && !can("patch")
}

func (s Selector) resource(r metav1.APIResource, list *metav1.APIResourceList) Resource {
	return Resource{
		GroupVersionKind: s.WithKind(r.Kind), Plural: r.Name, Namespaced: r.Namespaced,
		StatusSubresource: slices.ContainsFunc(list.APIResources, func(other metav1.APIResource) bool {
			return other.Name == r.Name+"/status"
		}),
	}
}

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// Resource is a kind that the API server serves.
type Resource struct {
	schema.GroupVersionKind
	Plural            string
	Namespaced        bool
	StatusSubresource bool
}

// Lister is the part of a discovery client that is needed.
type Lister interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
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

// needed are the verbs without which a resource cannot be handled.
var needed = []string{"list", "watch", "patch"}

// resolve finds the resource that a selector means among those of its group and version.
func resolve(s Selector, list *metav1.APIResourceList) (Resource, error) {
	var found []metav1.APIResource
	for _, r := range list.APIResources {
		if s.matches(r) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0:
		return Resource{}, &unservedError{fmt.Sprintf("%s has no resource named %q", s.GroupVersion, s.Kind+s.Name)}
	case len(found) > 1:
		return Resource{}, &unservedError{fmt.Sprintf("%s is ambiguous: it may be %q or %q", s, found[0].Name, found[1].Name)}
	}
	for _, verb := range needed {
		if !slices.Contains(found[0].Verbs, verb) {
			return Resource{}, &unservedError{fmt.Sprintf("%s cannot be handled: it does not support %q", s, verb)}
		}
	}
	return Resource{
		GroupVersionKind: s.WithKind(found[0].Kind), Plural: found[0].Name, Namespaced: found[0].Namespaced,
		StatusSubresource: slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == found[0].Name+"/status"
		}),
	}, nil
}

// inquiry is one round of questions: each group and version is asked for once, and what is heard holds for the round, so
// that two selectors of one kind are found together or not at all.
type inquiry struct {
	lister  Lister
	answers map[schema.GroupVersion]answer
	server  resources.Getter
	scans   map[string]scan
}

type answer struct {
	list *metav1.APIResourceList
	err  error
}

func (i inquiry) find(ctx context.Context, s Selector) (Resource, error) {
	if s.Spelling != "" {
		return i.spelled(ctx, s)
	}
	heard, asked := i.answers[s.GroupVersion]
	if !asked {
		heard.list, heard.err = i.lister.ServerResourcesForGroupVersionWithContext(ctx, s.GroupVersion.String())
		i.answers[s.GroupVersion] = heard
	}
	if heard.err != nil {
		return Resource{}, fmt.Errorf("listing the resources of %s: %w", s.GroupVersion, heard.err)
	}
	return resolve(s, heard.list)
}

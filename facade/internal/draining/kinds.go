package draining

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// resolvedKind is a resource with the ids of its handlers.
type resolvedKind struct {
	discovery.Resource

	ids []string
}

// resolveKinds finds the resources of the handled kinds, each once, although several selectors can match it. A kind
// that the cluster does not serve has no objects. A kind that could not be looked up is reported as left.
func (r *run) resolveKinds(ctx context.Context) (found []*resolvedKind) {
	inquiry, known := discovery.NewInquiry(r, nil), map[schema.GroupResource]*resolvedKind{}
	for _, kind := range r.Kinds {
		for _, one := range r.resolveSelector(ctx, inquiry, kind.Selector) {
			of := known[one.GroupResource()]
			if of == nil {
				of = &resolvedKind{Resource: one}
				known[one.GroupResource()], found = of, append(found, of)
			}
			of.ids = append(of.ids, kind.IDs...)
		}
	}
	for _, selector := range r.Children {
		for _, one := range r.resolveSelector(ctx, inquiry, selector) {
			r.childKinds[one.GroupVersionKind.GroupKind()] = true
		}
	}
	return found
}

// resolveSelector returns the resources of one selector, and reports everything that prevents a complete answer.
func (r *run) resolveSelector(
	ctx context.Context, inquiry *discovery.Inquiry, selector discovery.Selector,
) []discovery.Resource {
	resolved, err := inquiry.Resolve(ctx, selector, nil)
	switch {
	case discovery.IsUnserved(err), err == nil && len(resolved.Served) == 0 && !resolved.Incomplete:
		r.note("The cluster has no %s, and so no objects of it", selector)
	case err != nil:
		r.leave(selector.String(), "objects", err)
	case resolved.Incomplete:
		r.leave(selector.String(), "objects", fmt.Errorf("the API server could not list all kinds: %s",
			resolved.Reason))
	}
	return resolved.Served
}

// selectNamespaces returns the namespaces of the drain; "" alone is the whole cluster.
func (r *run) selectNamespaces(ctx context.Context) ([]string, error) {
	if len(r.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}, nil
	}
	// Plain names need no permission to list namespaces.
	if names, plain := r.Namespaces.PlainNames(); plain {
		return names, nil
	}
	names, err := r.MatchingNamespaces(ctx, r.Namespaces)
	if err == nil && len(names) == 0 {
		return nil, fmt.Errorf("no namespace matches the patterns %v", r.Namespaces)
	}
	return names, err
}

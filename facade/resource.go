package kopf

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// Resource is one version of a resource as the API server lists it. Kopf: Resource.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs.
	Plural, Singular string
	// Shortcuts are short names; Categories are groups of kinds such as "all".
	Shortcuts, Categories []string
	// Subresources are those of the resource, such as "status".
	Subresources []string
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// Preferred is true for the version that the API server prefers in the group.
	Preferred bool
	// Verbs are the supported verbs, such as "list" and "watch".
	Verbs []string
}

// GroupVersionResource returns the resource as client-go names it.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// String returns group/version/plural; the group is empty for core resources.
func (r Resource) String() string { return discovery.Resource(r).String() }

// resourceOf returns a resource that shares nothing with what was discovered.
func resourceOf(r discovery.Resource) Resource {
	r.Shortcuts, r.Categories = slices.Clone(r.Shortcuts), slices.Clone(r.Categories)
	r.Subresources, r.Verbs = slices.Clone(r.Subresources), slices.Clone(r.Verbs)
	return Resource(r)
}

package kopf

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// Resource is one version of a resource. Kopf: Resource.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs.
	Plural, Singular string
	// Shortcuts are short names; Categories are groups such as "all".
	Shortcuts, Categories []string
	// Subresources are names such as "status".
	Subresources []string
	// Namespaced is false for cluster-scoped resources.
	Namespaced bool
	// Preferred marks the API server's preferred version.
	Preferred bool
	// Verbs are names such as "list".
	Verbs []string
}

// GroupVersionResource returns the name in client-go.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// String returns group/version/plural.
func (r Resource) String() string { return discovery.Resource(r).String() }

// resourceOf returns a copy that does not share slices with the discovered resource.
func resourceOf(r discovery.Resource) Resource {
	r.Shortcuts, r.Categories = slices.Clone(r.Shortcuts), slices.Clone(r.Categories)
	r.Subresources, r.Verbs = slices.Clone(r.Subresources), slices.Clone(r.Verbs)
	return Resource(r)
}

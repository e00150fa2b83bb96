package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a kind in one version, as the API server serves it. Kopf: Resource.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs.
	Plural, Singular string
	// Shortcuts are short names; Categories are groups of kinds such as "all".
	Shortcuts, Categories []string
	// Subresources are those of the resource, such as "status".
	Subresources []string
	// Namespaced is false for kinds of the whole cluster.
	Namespaced bool
	// Preferred is true for the version that the API server prefers in the group, where that was asked for.
	Preferred bool
	// Verbs are what can be done with it, such as "list" and "watch".
	Verbs []string
}

// String is group/version/plural; the group of the core is empty.
func (r Resource) String() string { return r.Group + "/" + r.Version + "/" + r.Plural }

// GroupResource is what all versions of the resource have in common: their objects are the same.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource is where its objects are.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// HasStatus tells whether the status is a subresource, which is written by a request of its own.
func (r Resource) HasStatus() bool { return slices.Contains(r.Subresources, "status") }

// Interchangeable tells whether a controller of one of the resources would be the same for the other: all that it
// depends on is equal.
func (r Resource) Interchangeable(other Resource) bool {
	return r.GroupVersionKind == other.GroupVersionKind && r.Plural == other.Plural &&
		r.Namespaced == other.Namespaced && r.HasStatus() == other.HasStatus()
}

// Can tells whether the resource has all of the verbs.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// isEvents tells whether these are Kubernetes events. "Everything" leaves them out: handling events makes new events.
func (r Resource) isEvents() bool {
	switch r.Group {
	case "":
		return r.Plural == "events"
	case "events.k8s.io":
		return r.Plural == "events" && r.Preferred
	default:
		return false
	}
}

// terminating tells a kind whose CRD is being deleted: nothing is to be made or changed any more, say the API server's
// lists. But it takes patches still, and the CRD waits for the objects, which wait for their finalizers.
func (r Resource) terminating() bool {
	return r.Can("delete", "deletecollection", "list", "watch") && !r.Can("create") && !r.Can("update") &&
		!r.Can("patch")
}

// patchable gives the resources with the verb "patch" where they are terminating.
func patchable(found []Resource) []Resource {
	for i, r := range found {
		if r.terminating() {
			found[i].Verbs = append(slices.Clone(r.Verbs), "patch")
		}
	}
	return found
}

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
	// Shortcuts are short names; Categories are groups of kinds, such as "all".
	Shortcuts, Categories []string
	// Subresources are the names of the subresources, such as "status".
	Subresources []string
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// Preferred is true for the group's preferred version. It is only known if the groups were listed.
	Preferred bool
	// Verbs are the supported operations, such as "list" and "watch".
	Verbs []string
}

// builtInGroups holds the API groups of Kubernetes' own kinds. All other groups below k8s.io, such as
// gateway.networking.k8s.io, belong to CRDs.
var builtInGroups = map[string]bool{
	"": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// IsBuiltIn reports whether the kind belongs to Kubernetes itself, and not to a CRD or to an extension server.
func (r Resource) IsBuiltIn() bool { return builtInGroups[r.Group] }

// String returns group/version/plural; the core group is empty.
func (r Resource) String() string { return r.Group + "/" + r.Version + "/" + r.Plural }

// GroupResource returns the identity that all versions of the resource share: their objects are the same.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource returns the identity of the resource in requests.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// HasStatus reports whether the status is a subresource, which is written by a separate request.
func (r Resource) HasStatus() bool { return slices.Contains(r.Subresources, "status") }

// IsInterchangeable reports whether both resources can have the same controller: everything that a controller depends
// on is equal.
func (r Resource) IsInterchangeable(other Resource) bool {
	return r.GroupVersionKind == other.GroupVersionKind && r.Plural == other.Plural &&
		r.Namespaced == other.Namespaced && r.HasStatus() == other.HasStatus()
}

// HasVerbs reports whether the resource has all of the verbs.
func (r Resource) HasVerbs(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// isEvents reports whether these are Kubernetes events. "Everything" leaves them out, because handling events posts new
// events. As in Kopf, other versions of events.k8s.io are not recognized.
func (r Resource) isEvents() bool {
	// Kubernetes serves the same events in both groups.
	switch r.Group {
	case "":
		return r.Plural == "events"
	case "events.k8s.io":
		return r.Plural == "events" && r.Preferred
	default:
		return false
	}
}

// isTerminating reports whether the CRD of the kind is being deleted. The API server then lists only verbs that read
// and delete, but it still accepts patches. They are necessary: the CRD waits for its objects, and these wait for their
// finalizers.
func (r Resource) isTerminating() bool {
	return r.HasVerbs("delete", "deletecollection", "list", "watch") && !r.HasVerbs("create") &&
		!r.HasVerbs("update") &&
		!r.HasVerbs("patch")
}

// addPatchVerb adds the verb "patch" to resources that are terminating.
func addPatchVerb(found []Resource) []Resource {
	for i, r := range found {
		if r.isTerminating() {
			// The list of verbs is shared with the decoded document.
			found[i].Verbs = append(slices.Clone(r.Verbs), "patch")
		}
	}
	return found
}

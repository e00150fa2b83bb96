package resources

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
	// Preferred is true for the version that the API server prefers in the group.
	Preferred bool
	// Verbs are what can be done with it, such as "list" and "watch".
	Verbs []string
}

// String is group/version/plural; the group of the core is empty.
func (r Resource) String() string { return r.Group + "/" + r.Version + "/" + r.Plural }

// Can tells whether the resource has all of the verbs.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// isEvents is true for what nobody means by everything: Kubernetes events, which would be events on events.
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

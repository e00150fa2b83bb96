package reconcilers

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Selector means one kind of resources: a group and version, with either its kind or any of its names; or what was spelled
// otherwise, see [Spelled].
type Selector struct {
	schema.GroupVersion
	// Kind is the exact kind; Name is the plural, the singular, the kind or a short name.
	Kind, Name string

	// Spelling is the parts of a name that says less, or more, than these; it is made by Spelled.
	Spelling string
}

// String is how the selector is shown in messages.
func (s Selector) String() string {
	if s.Spelling != "" {
		return strings.ReplaceAll(s.Spelling, between, " ")
	}
	return s.GroupVersion.String() + " " + cmp.Or(s.Kind, s.Name)
}

// matches takes no subresources: they are named after their resource, and may have its kind.
func (s Selector) matches(r metav1.APIResource) bool {
	switch {
	case strings.Contains(r.Name, "/"):
		return false
	case s.Kind != "":
		return r.Kind == s.Kind
	default:
		// Servers may leave the singular out; it is the kind in small letters then.
		return s.Name == r.Name || s.Name == r.Kind || s.Name == cmp.Or(r.SingularName, strings.ToLower(r.Kind)) || slices.Contains(r.ShortNames, s.Name)
	}
}

// MayMean tells whether two selectors mean the same kind, as far as that can be known without asking a cluster: plurals
// are guessed from kinds, by the rules that code generators have for them.
func (s Selector) MayMean(other Selector) bool {
	// Versions are views of the same objects.
	if s.grouped() && other.grouped() && s.Group != other.Group {
		return false
	}
	return cmp.Or(s.Kind, s.Name) == cmp.Or(other.Kind, other.Name) || s.mayBeCalled(other.Name) || other.mayBeCalled(s.Name)
}

// Contradicts tells whether two selectors of one kind are for different versions of it.
func (s Selector) Contradicts(other Selector) bool {
	return s.Version != "" && other.Version != "" && s.Version != other.Version
}

func (s Selector) mayBeCalled(name string) bool {
	if s.Kind == "" || name == "" {
		return false
	}
	plural, singular := meta.UnsafeGuessKindToResource(s.WithKind(s.Kind))
	return name == plural.Resource || name == singular.Resource
}

// selectorsOf are the selectors of the registrations, each once, in their order.
func selectorsOf(registrations []Registration) []Selector {
	var all []Selector
	for _, r := range registrations {
		if !slices.Contains(all, r.Selector) {
			all = append(all, r.Selector)
		}
	}
	return all
}

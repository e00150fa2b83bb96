package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
)

// MayMean tells whether two selectors mean the same kind, as far as that can be known without asking a cluster: plurals
// are guessed from kinds, by the rules that code generators have for them. What categories and functions have in common
// with others is not known.
func (s Selector) MayMean(other Selector) bool {
	// Versions are views of the same objects.
	if s.Group.Given && other.Group.Given && s.Group != other.Group {
		return false
	}
	if !s.Specific() || !other.Specific() {
		return s == other || s.Everything && other.Func == nil || other.Everything && s.Func == nil
	}
	return slices.ContainsFunc(s.names(), func(name string) bool { return slices.Contains(other.names(), name) })
}

// Contradicts tells whether two selectors of one kind are for different versions of it. Those of several kinds take
// what they can get.
func (s Selector) Contradicts(other Selector) bool {
	return s.Version.Text != "" && other.Version.Text != "" && s.Version != other.Version && s.Specific() &&
		other.Specific()
}

// names are all names that the one resource of a specific selector is known to have, or is guessed to have.
func (s Selector) names() []string {
	if s.Kind == "" {
		return []string{s.name()}
	}
	plural, singular := meta.UnsafeGuessKindToResource(s.groupVersion().WithKind(s.Kind))
	return []string{s.Kind, plural.Resource, singular.Resource}
}

// dependsOnCRDs tells whether CRDs that come or go can make a difference to what the selectors mean. Groups without a
// dot are the API server's own.
func dependsOnCRDs(selectors []Selector) bool {
	return slices.ContainsFunc(selectors, func(s Selector) bool {
		return !s.direct() || strings.Contains(s.Group.Text, ".")
	})
}

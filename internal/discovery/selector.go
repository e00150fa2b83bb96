package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Selector matches one resource or more, by exactly one sort of names. Selectors with equal fields are equal, so they
// can be map keys; two functions are never equal.
type Selector struct {
	// Group may be left open; the empty group is the core group.
	Group SelectorPart
	// Version may be left open for the preferred version. No resource has the empty version.
	Version SelectorPart
	// Name is the plural, the singular, the kind or a short name.
	Name string
	// These are names of one sort only.
	Kind, Plural, Singular, Shortcut, Category string
	// Everything matches any name.
	Everything bool
	// Func decides by itself, on all versions; it is made by ByFunc.
	Func *func(Resource) bool
}

// SelectorPart is a group or a version of a Selector. The zero value leaves it open.
type SelectorPart struct {
	Text  string
	IsSet bool
}

// NewSelectorPart returns a Part with this text, which may be empty.
func NewSelectorPart(text string) SelectorPart { return SelectorPart{Text: text, IsSet: true} }

// OfKind returns the selector of one exact kind.
func OfKind(kind schema.GroupVersionKind) Selector {
	return Selector{Group: NewSelectorPart(kind.Group), Version: NewSelectorPart(kind.Version), Kind: kind.Kind}
}

// ByFunc returns the selector of all resources for which the function is true, in any version. Two of them are never
// equal.
func ByFunc(meant func(Resource) bool) Selector { return Selector{Func: &meant} }

// errNames is the error of a selector with no name or with names of several sorts.
var errNames = errors.New(
	"exactly one name of a resource is needed: a name of any sort, a kind, plural, singular, short name or " +
		"category, everything, or a function",
)

// checkNames returns an error unless there is exactly one sort of names.
func (s Selector) checkNames() error {
	// Each of these is one sort of names.
	given := 0
	for _, name := range []string{s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut, s.Category} {
		if name != "" {
			given++
		}
	}
	if s.Everything {
		given++
	}
	if s.Func != nil {
		given++
	}
	if given != 1 {
		return errNames
	}
	return nil
}

// IsSpecific reports whether the selector names one kind. It is an error if it matches several kinds.
func (s Selector) IsSpecific() bool {
	return s.Category == "" && !s.Everything && s.Func == nil
}

// isDirect reports whether the document of one group version is enough to resolve the selector. Otherwise all groups,
// or all versions of one group, must be listed.
func (s Selector) isDirect() bool { return s.Group.IsSet && s.Version.IsSet && s.IsSpecific() }

// groupVersion returns the group and version of a direct selector.
func (s Selector) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: s.Group.Text, Version: s.Version.Text}
}

// Matches reports whether the selector matches the resource.
func (s Selector) Matches(r Resource) bool {
	switch {
	case s.Group.IsSet && s.Group.Text != r.Group:
		return false
	case s.Version.IsSet && s.Version.Text != r.Version:
		return false
	case !s.Version.IsSet && !r.Preferred && s.Func == nil:
		// Without a version, the preferred one is meant. A function sees all versions.
		return false
	case (s.Everything || s.Func != nil) && r.isEvents():
		return false
	default:
		return s.matchesName(r)
	}
}

// matchesName reports whether the name of the selector matches, by its sort.
func (s Selector) matchesName(r Resource) bool {
	switch {
	case s.Func != nil:
		return (*s.Func)(r)
	case s.Everything:
		return true
	case s.Category != "":
		return slices.Contains(r.Categories, s.Category)
	case s.Shortcut != "":
		return slices.Contains(r.Shortcuts, s.Shortcut)
	case s.Name != "":
		return s.Name == r.Kind || s.Name == r.Plural || s.Name == r.Singular || slices.Contains(r.Shortcuts, s.Name)
	default:
		// Exactly one of the three is set.
		return (s.Kind == "" || s.Kind == r.Kind) && (s.Plural == "" || s.Plural == r.Plural) &&
			(s.Singular == "" || s.Singular == r.Singular)
	}
}

// SelectFrom returns the matching resources. If several resources have the same name, those of the core group win, as
// in Kopf.
func (s Selector) SelectFrom(all []Resource) []Resource {
	var meant, core []Resource
	for _, r := range all {
		if !s.Matches(r) {
			continue
		}
		meant = append(meant, r)
		if r.Group == "" {
			core = append(core, r)
		}
	}
	// For example, the name "events" means the core events, and not those of events.k8s.io.
	if s.IsSpecific() && len(core) > 0 {
		return core
	}
	return meant
}

// singleName returns the only name of a specific selector, of any sort.
func (s Selector) singleName() string {
	return cmp.Or(s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut)
}

// String returns the group and the version, as far as they are given, and the name, for messages.
func (s Selector) String() string {
	// An open group and an open version are left out.
	where := s.Group.Text
	if s.Version.IsSet {
		where += "/" + s.Version.Text
	}
	name := s.singleName()
	switch {
	case s.Category != "":
		name = fmt.Sprintf("category %q", s.Category)
	case s.Everything:
		name = "everything"
	case s.Func != nil:
		name = "resources by a function"
	}
	return strings.TrimSpace(strings.TrimPrefix(where, "/") + " " + name)
}

// MayMean reports whether two selectors may match the same kind, as far as that is known without a cluster. It guesses
// plurals from kinds, by the rules of code generators. Everything may match the kind of any other selector, except of a
// function. The resources of categories and functions are unknown, so they only match equal selectors.
func (s Selector) MayMean(other Selector) bool {
	// Versions are views of the same objects.
	if s.Group.IsSet && other.Group.IsSet && s.Group != other.Group {
		return false
	}
	// One of them matches many kinds.
	if !s.IsSpecific() || !other.IsSpecific() {
		return s == other || s.Everything && other.Func == nil || other.Everything && s.Func == nil
	}
	// Compare all names that the kind may have.
	return slices.ContainsFunc(s.possibleNames(),
		func(name string) bool { return slices.Contains(other.possibleNames(), name) })
}

// ContradictsVersion reports whether two selectors of one kind require different versions. Selectors of several kinds
// never contradict, because they take any version.
func (s Selector) ContradictsVersion(other Selector) bool {
	return s.Version.Text != "" && other.Version.Text != "" && s.Version != other.Version && s.IsSpecific() &&
		other.IsSpecific()
}

// possibleNames returns all known and guessed names of the resource of a specific selector.
func (s Selector) possibleNames() []string {
	if s.Kind == "" {
		return []string{s.singleName()}
	}
	plural, singular := meta.UnsafeGuessKindToResource(s.groupVersion().WithKind(s.Kind))
	return []string{s.Kind, plural.Resource, singular.Resource}
}

// DependsOnCRDs reports whether new or removed CRDs can change the result of the selector. Groups without a dot are
// built into the API server.
func (s Selector) DependsOnCRDs() bool { return !s.isDirect() || strings.Contains(s.Group.Text, ".") }

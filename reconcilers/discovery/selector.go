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

// Selector means one resource or more, by exactly one sort of names. Selectors that say the same are equal, so they are
// keys of maps; two functions are never the same.
type Selector struct {
	// Group may be left open; empty is the core group.
	Group Part
	// Version may be left open: then it is the preferred one. No resource has the empty one.
	Version Part
	// Name is the plural, the singular, the kind or a short name.
	Name string
	// These are names of one sort only.
	Kind, Plural, Singular, Shortcut, Category string
	// Everything is any name.
	Everything bool
	// Func decides by itself, on all versions; it is made by ByFunc.
	Func *func(Resource) bool
}

// Part is a group or a version that a Selector names or leaves open, which is the zero value.
type Part struct {
	Text  string
	Given bool
}

// Given is a Part with this text, which may be empty.
func Given(text string) Part { return Part{Text: text, Given: true} }

// OfKind is the selector of one exact kind.
func OfKind(kind schema.GroupVersionKind) Selector {
	return Selector{Group: Given(kind.Group), Version: Given(kind.Version), Kind: kind.Kind}
}

// ByFunc is the selector of all resources for which the function is true, in whatever version. Two of them are never
// the same selector.
func ByFunc(meant func(Resource) bool) Selector { return Selector{Func: &meant} }

// errNames is for none or several sorts of names.
var errNames = errors.New(
	"exactly one name of a resource is needed: a name of any sort, a kind, plural, singular, short name or " +
		"category, everything, or a function",
)

// check wants exactly one sort of names.
func (s Selector) check() error {
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

// Specific tells whether the selector names one kind: then it must not mean several.
func (s Selector) Specific() bool {
	return s.Category == "" && !s.Everything && s.Func == nil
}

// direct tells whether the list of one group and version says what is meant: otherwise all groups, or all versions of
// one, must be looked at.
func (s Selector) direct() bool { return s.Group.Given && s.Version.Given && s.Specific() }

// groupVersion is that of a direct selector.
func (s Selector) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: s.Group.Text, Version: s.Version.Text}
}

// Matches tells whether the resource is meant.
func (s Selector) Matches(r Resource) bool {
	switch {
	case s.Group.Given && s.Group.Text != r.Group:
		return false
	case s.Version.Given && s.Version.Text != r.Version:
		return false
	case !s.Version.Given && !r.Preferred && s.Func == nil:
		return false
	case (s.Everything || s.Func != nil) && r.isEvents():
		return false
	default:
		return s.named(r)
	}
}

func (s Selector) named(r Resource) bool {
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
		return (s.Kind == "" || s.Kind == r.Kind) && (s.Plural == "" || s.Plural == r.Plural) &&
			(s.Singular == "" || s.Singular == r.Singular)
	}
}

// Select gives the resources that are meant. Of those that are called alike, the ones of the core win.
func (s Selector) Select(all []Resource) []Resource {
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
	if s.Specific() && len(core) > 0 {
		return core
	}
	return meant
}

// name is the one name of a specific selector, of whatever sort.
func (s Selector) name() string { return cmp.Or(s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut) }

// String is for messages: the group and the version as far as they are given, and the name.
func (s Selector) String() string {
	where := s.Group.Text
	if s.Version.Given {
		where += "/" + s.Version.Text
	}
	name := s.name()
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

package resources

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Selector means one resource or more, by exactly one sort of names.
type Selector struct {
	// Group is nil if it is not said; empty is the core group.
	Group *string
	// Version is nil if it is not said: then it is the preferred one. No resource has the empty one.
	Version *string
	// Name is the plural, the singular, the kind or a short name.
	Name string
	// These are names of one sort only.
	Kind, Plural, Singular, Shortcut, Category string
	// Everything is any name.
	Everything bool
	// Func decides by itself, on all versions.
	Func func(Resource) bool
}

// errNames is for none or several sorts of names.
var errNames = errors.New(
	"exactly one name of a resource is needed: a name of any sort, a kind, plural, singular, short name or " +
		"category, everything, or a function",
)

// Set says one more thing by its keyword, as Kopf has them: group, version, kind, plural, singular, shortcut or
// category.
func (s *Selector) Set(keyword, value string) error {
	switch keyword {
	case "group":
		s.Group = &value
		return nil
	case "version":
		s.Version = &value
		return nil
	case "kind":
		s.Kind = value
	case "plural":
		s.Plural = value
	case "singular":
		s.Singular = value
	case "shortcut":
		s.Shortcut = value
	case "category":
		s.Category = value
	default:
		return fmt.Errorf(
			"unknown keyword %q: there are group, version, kind, plural, singular, shortcut and category", keyword,
		)
	}
	if value == "" {
		return fmt.Errorf("the %s is empty: %w", keyword, errNames)
	}
	return nil
}

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

// Matches tells whether the resource is meant.
func (s Selector) Matches(r Resource) bool {
	switch {
	case s.Group != nil && *s.Group != r.Group:
		return false
	case s.Version != nil && *s.Version != r.Version:
		return false
	case s.Version == nil && !r.Preferred && s.Func == nil:
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
		return s.Func(r)
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

// String is for messages.
func (s Selector) String() string {
	where := ""
	if s.Group != nil {
		where = *s.Group
	}
	if s.Version != nil {
		where += "/" + *s.Version
	}
	name := cmp.Or(s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut)
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

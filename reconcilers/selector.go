package reconcilers

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// Selector means resources: one of a group and version, with either its kind or any of its names; or what was spelled
// otherwise, see [Spelled] and [Chosen].
type Selector struct {
	schema.GroupVersion
	// Kind is the exact kind; Name is the plural, the singular, the kind or a short name.
	Kind, Name string

	// Spelling is the parts of a name that says less, or more, than these; it is made by Spelled.
	Spelling string
	// Func decides by itself; it is made by Chosen.
	Func *func(resources.Resource) bool
}

// String is how the selector is shown in messages.
func (s Selector) String() string {
	switch {
	case s.Func != nil:
		return "resources by a function"
	case s.Spelling != "":
		return strings.ReplaceAll(s.Spelling, between, " ")
	default:
		return s.GroupVersion.String() + " " + cmp.Or(s.Kind, s.Name)
	}
}

// searched tells whether all groups, or all of one, must be looked at to know what is meant.
func (s Selector) searched() bool { return s.Spelling != "" || s.Func != nil }

// wide tells whether several resources may be meant.
func (s Selector) wide() bool {
	parsed, err := s.parse()
	return s.searched() && err == nil && !parsed.Specific()
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
		return s.Name == r.Name || s.Name == r.Kind || s.Name == cmp.Or(r.SingularName, strings.ToLower(r.Kind)) ||
			slices.Contains(r.ShortNames, s.Name)
	}
}

// MayMean tells whether two selectors mean the same kind, as far as that can be known without asking a cluster: plurals
// are guessed from kinds, by the rules that code generators have for them. What categories and functions have in common
// with others is not known.
func (s Selector) MayMean(other Selector) bool {
	// Versions are views of the same objects.
	if s.grouped() && other.grouped() && s.Group != other.Group {
		return false
	}
	if s.wide() || other.wide() {
		return s == other || s.everything() && other.Func == nil || other.everything() && s.Func == nil
	}
	for _, name := range s.names() {
		for _, called := range other.names() {
			if name == called {
				return true
			}
		}
	}
	return false
}

// Contradicts tells whether two selectors of one kind are for different versions of it. Those of several kinds take
// what they can get.
func (s Selector) Contradicts(other Selector) bool {
	return s.Version != "" && other.Version != "" && s.Version != other.Version && !s.wide() && !other.wide()
}

// names are all names that one resource is known to have, or is guessed to have.
func (s Selector) names() []string {
	if s.searched() {
		parsed, _ := s.parse()
		s.Kind, s.Name = parsed.Kind, cmp.Or(parsed.Name, parsed.Plural, parsed.Singular, parsed.Shortcut)
	}
	if s.Kind == "" {
		return []string{s.Name}
	}
	plural, singular := meta.UnsafeGuessKindToResource(s.WithKind(s.Kind))
	return []string{s.Kind, plural.Resource, singular.Resource}
}

// grouped tells whether the selector says of which group it is.
func (s Selector) grouped() bool {
	if !s.searched() {
		return true
	}
	parsed, err := s.parse()
	return err == nil && parsed.Group != nil
}

func (s Selector) everything() bool {
	parsed, err := s.parse()
	return s.searched() && err == nil && parsed.Everything
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

// writersOf are the selectors with handlers whose memory, at least, is written to the objects.
func writersOf(registrations []Registration) map[Selector]bool {
	writers := map[Selector]bool{}
	for _, r := range registrations {
		if r.Handler.Family != handlers.Watching {
			writers[r.Selector] = true
		}
	}
	return writers
}

package discovery

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// marker is for what is no string.
type marker string

// Everything is any name, where a name can stand. Kopf: EVERYTHING.
const Everything = marker("everything")

// coreVersion is the one version that is known as such where it stands alone, as a group would.
const coreVersion = "v1"

// everything is what stands for Everything in a spelling.
const everything = "*"

// resourceName is what a plural, a singular, a kind, a short name or a category can be.
var resourceName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`)

// versioned is name.version, or name.version.group.
var versioned = regexp.MustCompile(`^[^.]*\.v\d+((alpha|beta)\d+)?(\..*)?$`)

// Spelled is the selector of resources by any of their names: parts are as in Parse, where "*" is everything, and
// "category=all" and the like are what Kopf has keywords for. It refuses what can be no name, group or version.
func Spelled(parts ...string) (Selector, error) {
	s, err := read(parts)
	if err != nil {
		return Selector{}, err
	}
	for _, name := range []string{s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut, s.Category} {
		if name != "" && !resourceName.MatchString(name) {
			return Selector{}, fmt.Errorf("invalid resource name %q: it is a plural, a singular, a kind or a short "+
				"name, such as \"kopfexamples\"", name)
		}
	}
	if strings.HasPrefix(parts[0], "/") {
		return Selector{}, fmt.Errorf(
			"invalid group and version %q: there is a slash, but no group: write \"v1\" for the core group", parts[0],
		)
	}
	if problems := validation.IsDNS1123Subdomain(s.Group.Text); s.Group.Text != "" && len(problems) > 0 {
		return Selector{}, fmt.Errorf("invalid group %q: %s", s.Group.Text, problems[0])
	}
	if s.Version.Given && s.Version.Text == "" {
		return Selector{}, errors.New("the version is empty: leave it out for the preferred one")
	}
	return s, nil
}

// read takes the keywords out of the parts of a spelling.
func read(parts []string) (Selector, error) {
	var args []any
	var named Selector
	for _, part := range parts {
		switch key, value, keyword := strings.Cut(part, "="); {
		case keyword:
			if err := named.Set(key, value); err != nil {
				return named, err
			}
		case part == everything:
			args = append(args, Everything)
		default:
			args = append(args, part)
		}
	}
	return Parse(args, named)
}

// Set says one more thing by its keyword, as Kopf has them: group, version, kind, plural, singular, shortcut or
// category.
func (s *Selector) Set(keyword, value string) error {
	switch keyword {
	case "group":
		s.Group = Given(value)
		return nil
	case "version":
		s.Version = Given(value)
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

// Parse reads the arguments by which a resource is named: one to three of them, the last of which is the name,
// Everything, or a func(Resource) bool; those before it are the group and the version, in the spellings of Kopf. A nil
// is not said. The selector holds what is said besides. All in all, there must be exactly one name.
func Parse(args []any, named Selector) (Selector, error) {
	s := named
	if len(args) > 3 {
		return s, fmt.Errorf("too many arguments: %d; at most a group, a version and a name are understood", len(args))
	}
	for len(args) > 0 && args[len(args)-1] == nil {
		args = args[:len(args)-1]
	}
	if len(args) == 0 {
		return s, s.check()
	}
	if fn, ok := args[0].(func(Resource) bool); ok {
		s.Func = &fn
		if len(args) > 1 {
			return s, fmt.Errorf("a function stands alone: %d arguments follow", len(args)-1)
		}
		return s, s.check()
	}
	if err := s.place(args[:len(args)-1]); err != nil {
		return s, err
	}
	switch name := args[len(args)-1].(type) {
	case marker:
		s.Everything = true
	case string:
		if name == "" {
			return s, fmt.Errorf("the name is empty: %w", errNames)
		}
		if len(args) == 1 {
			name = s.split(name)
		}
		if s.Name != "" {
			return s, errNames
		}
		s.Name = name
	default:
		return s, fmt.Errorf("%T is not a name of a resource", name)
	}
	return s, s.check()
}

// place reads the group and the version before the name.
func (s *Selector) place(args []any) error {
	if len(args) == 1 {
		if text, ok := args[0].(string); ok {
			at := strings.LastIndexByte(text, '/')
			switch {
			case at >= 0:
				args = []any{text[:at], text[at+1:]}
			case text == coreVersion:
				args = []any{"", text}
			}
		}
	}
	for i, into := range []*Part{&s.Group, &s.Version}[:len(args)] {
		switch said := args[i].(type) {
		case nil:
			*into = Part{} // whatever is said besides
		case string:
			*into = Given(said)
		default:
			return fmt.Errorf("%T is not a group or version", said)
		}
	}
	return nil
}

// split reads name.version.group, name.version and name.group.
func (s *Selector) split(text string) (name string) {
	name, rest, dotted := strings.Cut(text, ".")
	switch {
	case versioned.MatchString(text):
		number, group, grouped := strings.Cut(rest, ".")
		s.Version = Given(number)
		if grouped {
			s.Group = Given(group)
		}
	case dotted:
		s.Group = Given(rest)
	}
	return name
}

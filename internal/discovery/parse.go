package discovery

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// marker is the type of arguments that are not strings, so that a string cannot be mistaken for one.
type marker string

// Everything matches any name, in place of a name. Kopf: EVERYTHING.
const Everything = marker("everything")

// coreVersion is the only version that may be given without its group: "v1" alone means the core group, as in Kopf.
const coreVersion = "v1"

// everythingSpelling is the spelling of Everything.
const everythingSpelling = "*"

// resourceNamePattern is the pattern of a plural, singular, kind, short name or category.
var resourceNamePattern = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`)

// versionedNamePattern is the pattern of name.version and name.version.group. It equals Kopf's.
var versionedNamePattern = regexp.MustCompile(`^[^.]*\.v\d+((alpha|beta)\d+)?(\..*)?$`)

// ParseSpelling returns the selector of the given parts. They are the arguments of [ParseSelector] as texts: "*" is
// Everything, and a keyword of Kopf is written like "category=all". It returns an error for an impossible name, group
// or version.
func ParseSpelling(parts ...string) (Selector, error) {
	s, err := parseKeywords(parts)
	if err != nil {
		return Selector{}, err
	}
	for _, name := range []string{s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut, s.Category} {
		if name != "" && !resourceNamePattern.MatchString(name) {
			return Selector{}, fmt.Errorf("invalid resource name %q: it is a plural, a singular, a kind or a short "+
				"name, such as \"kopfexamples\"", name)
		}
	}
	// The part "/v1" has an empty group, which is spelled without the slash.
	if strings.HasPrefix(parts[0], "/") {
		return Selector{}, fmt.Errorf(
			"invalid group and version %q: there is a slash, but no group: write \"v1\" for the core group", parts[0],
		)
	}
	if problems := validation.IsDNS1123Subdomain(s.Group.Text); s.Group.Text != "" && len(problems) > 0 {
		return Selector{}, fmt.Errorf("invalid group %q: %s", s.Group.Text, problems[0])
	}
	// An empty version matches no resource.
	if s.Version.IsSet && s.Version.Text == "" {
		return Selector{}, errors.New("the version is empty: leave it out for the preferred one")
	}
	return s, nil
}

// parseKeywords separates the keywords from the positional parts of a spelling, and parses both.
func parseKeywords(parts []string) (Selector, error) {
	var args []any
	var named Selector
	for _, part := range parts {
		// Names of resources never contain an equals sign.
		switch key, value, keyword := strings.Cut(part, "="); {
		case keyword:
			if err := named.SetKeyword(key, value); err != nil {
				return named, err
			}
		case part == everythingSpelling:
			args = append(args, Everything)
		default:
			args = append(args, part)
		}
	}
	return ParseSelector(args, named)
}

// SetKeyword sets one field by its keyword, as in Kopf: group, version, kind, plural, singular, shortcut or category.
func (s *Selector) SetKeyword(keyword, value string) error {
	switch keyword {
	case "group":
		s.Group = NewSelectorPart(value)
		return nil
	case "version":
		s.Version = NewSelectorPart(value)
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
	// The zero value means "not given", so an empty name cannot be stored.
	if value == "" {
		return fmt.Errorf("the %s is empty: %w", keyword, errNames)
	}
	return nil
}

// ParseSelector reads the positional arguments that name a resource, at most three. The last one is the name,
// Everything, or a func(Resource) bool; those before it are the group and the version, in all spellings of Kopf. A nil
// argument leaves its part open. The selector has the values of the keywords. Both together must have exactly one name.
func ParseSelector(args []any, named Selector) (Selector, error) {
	s := named
	if len(args) > 3 {
		return s, fmt.Errorf("too many arguments: %d; at most a group, a version and a name are understood", len(args))
	}
	// Trailing nils are unspecified arguments.
	for len(args) > 0 && args[len(args)-1] == nil {
		args = args[:len(args)-1]
	}
	if len(args) == 0 {
		return s, s.checkNames()
	}
	// A predicate excludes names and further arguments.
	if fn, ok := args[0].(func(Resource) bool); ok {
		s.Func = &fn
		if len(args) > 1 {
			return s, fmt.Errorf("a function stands alone: %d arguments follow", len(args)-1)
		}
		return s, s.checkNames()
	}
	if err := s.parsePrefix(args[:len(args)-1]); err != nil {
		return s, err
	}
	switch name := args[len(args)-1].(type) {
	case marker:
		s.Everything = true
	case string:
		if name == "" {
			return s, fmt.Errorf("the name is empty: %w", errNames)
		}
		// Only a name that stands alone may contain its version and group.
		if len(args) == 1 {
			name = s.splitName(name)
		}
		// The keywords may have set the name already.
		if s.Name != "" {
			return s, errNames
		}
		s.Name = name
	default:
		return s, fmt.Errorf("%T is not a name of a resource", name)
	}
	return s, s.checkNames()
}

// parsePrefix reads the arguments before the name: the group and the version.
func (s *Selector) parsePrefix(args []any) error {
	// One argument may be "group/version", the core version, or a group.
	if len(args) == 1 {
		if text, ok := args[0].(string); ok {
			at := strings.LastIndexByte(text, '/')
			switch {
			// Kopf splits at the last slash.
			case at >= 0:
				args = []any{text[:at], text[at+1:]}
			case text == coreVersion:
				args = []any{"", text}
			}
		}
	}
	for i, into := range []*SelectorPart{&s.Group, &s.Version}[:len(args)] {
		switch said := args[i].(type) {
		case nil:
			*into = SelectorPart{} // unspecified, whatever the keywords say
		case string:
			*into = NewSelectorPart(said)
		default:
			return fmt.Errorf("%T is not a group or version", said)
		}
	}
	return nil
}

// splitName reads the version and the group out of name.version.group, name.version or name.group, and returns the
// name.
func (s *Selector) splitName(text string) (name string) {
	// A version has the form v1, v1alpha1 or v1beta1: any other second part begins a group.
	name, rest, dotted := strings.Cut(text, ".")
	switch {
	case versionedNamePattern.MatchString(text):
		number, group, grouped := strings.Cut(rest, ".")
		s.Version = NewSelectorPart(number)
		if grouped {
			s.Group = NewSelectorPart(group)
		}
	case dotted:
		s.Group = NewSelectorPart(rest)
	}
	return name
}

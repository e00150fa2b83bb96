package resources

import (
	"fmt"
	"regexp"
	"strings"
)

// marker is for what is no string.
type marker string

// Everything is any name, where a name can stand. Kopf: EVERYTHING.
const Everything = marker("everything")

// coreVersion is the one version that is known as such where it stands alone, as a group would.
const coreVersion = "v1"

// versioned is name.version, or name.version.group.
var versioned = regexp.MustCompile(`^[^.]*\.v\d+((alpha|beta)\d+)?(\..*)?$`)

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
		s.Func = fn
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
		return s, fmt.Errorf("%T is no name of a resource", name)
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
	for i, into := range []**string{&s.Group, &s.Version}[:len(args)] {
		switch said := args[i].(type) {
		case nil:
			*into = nil // whatever is said besides
		case string:
			*into = &said
		default:
			return fmt.Errorf("%T is no group or version", said)
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
		s.Version = &number
		if grouped {
			s.Group = &group
		}
	case dotted:
		s.Group = &rest
	}
	return name
}

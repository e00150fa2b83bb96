package cause

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Hidden stands in a remembered essence for a value of which only a digest is known. In JSON, it is null: whatever is
// decoded from it is zero.
type Hidden struct{ digest string }

// MarshalJSON gives a null: neither a value nor its digest is anybody's business.
func (Hidden) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// String tells people why there is nothing.
func (Hidden) String() string { return "(redacted)" }

// Veil takes the values under the paths out of the items of a diff, which is of what is at a place in the essence:
// items keep their paths, mappings in them their keys. The diff is not modified.
func Veil(d diff.Diff, at diff.Path, paths []diff.Path) diff.Diff {
	scope := within(paths).into(at)
	if len(d) == 0 || scope.nothing() {
		return d
	}
	veiled := make(diff.Diff, len(d))
	for i, item := range d {
		inner := scope.into(item.Path)
		item.Old, item.New = veil(item.Old, inner), veil(item.New, inner)
		veiled[i] = item
	}
	return veiled
}

func veil(value any, s *scope) any {
	if s.nothing() {
		return value
	}
	mapping, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	veiled := make(map[string]any, len(mapping))
	for key, inner := range mapping {
		veiled[key] = veil(inner, s.under(key))
	}
	return veiled
}

// scope is what a set of paths means for one place in a tree: all of the place, or what is at the paths from there on;
// nil is nothing. A path that leads through a list or a scalar means all of that: rather too much is hidden than too
// little.
//
// It is a tree itself, so that a place is looked up by its key, however many paths there are: whoever can write to an
// object can write any number of them.
type scope struct {
	all   bool
	below map[string]*scope
}

// everything is the scope of a place that is meant as a whole.
var everything = &scope{all: true}

// within is the scope of the root.
func within(paths []diff.Path) *scope {
	root := &scope{}
	for _, path := range paths {
		if len(path) == 0 {
			return everything
		}
		root.add(path)
	}
	if len(root.below) == 0 {
		return nil
	}
	return root
}

func (s *scope) add(path diff.Path) {
	for _, key := range path[:len(path)-1] {
		inner := s.below[key]
		if inner == nil {
			inner = &scope{}
			s.set(key, inner)
		}
		if s = inner; s.all {
			return
		}
	}
	s.set(path[len(path)-1], everything)
}

func (s *scope) set(key string, inner *scope) {
	if s.below == nil {
		s.below = map[string]*scope{}
	}
	s.below[key] = inner
}

// nothing is true if neither the place nor anything in it is meant.
func (s *scope) nothing() bool { return s == nil }

// whole is true if all of the place is meant.
func (s *scope) whole() bool { return s != nil && s.all }

func (s *scope) under(key string) *scope {
	if s == nil || s.all {
		return s
	}
	return s.below[key]
}

func (s *scope) into(path diff.Path) *scope {
	for _, key := range path {
		s = s.under(key)
	}
	return s
}

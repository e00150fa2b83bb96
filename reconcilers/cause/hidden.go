package cause

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Hidden is the place of a value in a last-handled essence if only its digest is known. It is encoded as a JSON null,
// and so decodes into the zero value of a Go type.
type Hidden struct{ digest string }

// MarshalJSON returns null, so that the digest is not revealed.
func (Hidden) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// String shows that there is a value, without the value.
func (Hidden) String() string { return "(redacted)" }

// VeilDiff replaces the values under the paths by nil in a copy of the diff. The items keep their paths, and mappings
// keep their keys. The paths of the items are relative to the path at; the given paths are not.
func VeilDiff(d diff.Diff, at diff.Path, paths []diff.Path) diff.Diff {
	scope := newScope(paths).atPath(at)
	if len(d) == 0 || scope.isEmpty() {
		return d
	}
	veiled := make(diff.Diff, len(d))
	for i, item := range d {
		inner := scope.atPath(item.Path)
		item.Old, item.New = veilValue(item.Old, inner), veilValue(item.New, inner)
		veiled[i] = item
	}
	return veiled
}

// veilValue replaces the values that the scope covers. Uncovered values are shared with the original.
func veilValue(value any, s *scope) any {
	if s.isEmpty() {
		return value
	}
	mapping, ok := value.(map[string]any)
	// A path that leads through a list or a scalar covers all of it.
	if !ok {
		return nil
	}
	veiled := make(map[string]any, len(mapping))
	for key, inner := range mapping {
		veiled[key] = veilValue(inner, s.atKey(key))
	}
	return veiled
}

// scope is a set of paths, seen from one position in a tree: it covers the whole position, or the positions at its
// paths below. Nil covers nothing. A path that leads through a list or a scalar covers all of it, so that too much is
// hidden rather than too little.
//
// It is a tree, so that a lookup does not depend on the number of paths: every user who can write to an object can list
// any number of paths in the stored essence.
type scope struct {
	all   bool              // it covers the whole position
	below map[string]*scope // by key
}

// everything covers the whole position.
var everything = &scope{all: true}

// newScope returns the scope of the paths at the root of the tree. An empty path covers everything.
func newScope(paths []diff.Path) *scope {
	root := &scope{}
	for _, path := range paths {
		if len(path) == 0 {
			return everything
		}
		root.addPath(path)
	}
	if len(root.below) == 0 {
		return nil
	}
	return root
}

// addPath adds a path. It stops where a shorter path covers the position already.
func (s *scope) addPath(path diff.Path) {
	for _, key := range path[:len(path)-1] {
		inner := s.below[key]
		if inner == nil {
			inner = &scope{}
			s.setBelow(key, inner)
		}
		// A shorter path covers this position already.
		if s = inner; s.all {
			return
		}
	}
	s.setBelow(path[len(path)-1], everything)
}

// setBelow sets the scope below a key.
func (s *scope) setBelow(key string, inner *scope) {
	if s.below == nil {
		s.below = map[string]*scope{}
	}
	s.below[key] = inner
}

// isEmpty reports whether the scope covers neither the position nor anything below it.
func (s *scope) isEmpty() bool { return s == nil }

// coversAll reports whether the scope covers the whole position.
func (s *scope) coversAll() bool { return s != nil && s.all }

// atKey returns the scope of the position below a key.
func (s *scope) atKey(key string) *scope {
	if s == nil || s.all {
		return s
	}
	return s.below[key]
}

// atPath returns the scope of the position at a path.
func (s *scope) atPath(path diff.Path) *scope {
	for _, key := range path {
		s = s.atKey(key)
	}
	return s
}

package cause

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Hidden replaces a value in a last-handled essence if only the digest of the value is stored. It is encoded as a JSON
// null, so it decodes into the zero value of a Go type.
type Hidden struct{ digest string }

// MarshalJSON returns null, so that the digest is not revealed.
func (Hidden) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// String shows that there is a value, without the value.
func (Hidden) String() string { return "(redacted)" }

// VeilDiff returns a copy of the diff in which the values under the paths are nil. The items keep their paths, and
// mappings keep their keys. The paths of the items start at the path at; the paths to veil start at the root of the
// object. If there is nothing to veil, it returns the diff itself.
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

// veilValue returns the value with nil in place of everything that the scope covers. The result shares the rest with
// the value.
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

// scope is a set of paths, seen from one position in a tree. It covers the whole position, or only what the paths in
// byKey lead to. A nil scope covers nothing. A path that leads through a list or a scalar covers the whole list or
// scalar, so that too much is hidden rather than too little.
//
// The paths are stored as a tree, so that the cost of a lookup does not depend on their number: every user who can
// write an object can add any number of paths to its stored essence.
type scope struct {
	coversPosition bool // it covers the whole position
	byKey          map[string]*scope
}

// newScope returns the scope of the paths at the root of the tree. An empty path covers everything.
func newScope(paths []diff.Path) *scope {
	if len(paths) == 0 {
		return nil
	}
	root := &scope{}
	for _, path := range paths {
		root.addPath(path)
	}
	return root
}

// addPath adds a path. It replaces longer paths that begin with it.
func (s *scope) addPath(path diff.Path) {
	for _, key := range path {
		// A shorter path covers this position already.
		if s.coversPosition {
			return
		}
		if s.byKey == nil {
			s.byKey = map[string]*scope{}
		}
		if s.byKey[key] == nil {
			s.byKey[key] = &scope{}
		}
		s = s.byKey[key]
	}
	*s = scope{coversPosition: true}
}

// isEmpty reports whether the scope covers neither the position nor anything below it.
func (s *scope) isEmpty() bool { return s == nil }

// coversAll reports whether the scope covers the whole position.
func (s *scope) coversAll() bool { return s != nil && s.coversPosition }

// atKey returns the scope of the position below a key.
func (s *scope) atKey(key string) *scope {
	if s == nil || s.coversPosition {
		return s
	}
	return s.byKey[key]
}

// atPath returns the scope of the position at a path.
func (s *scope) atPath(path diff.Path) *scope {
	for _, key := range path {
		s = s.atKey(key)
	}
	return s
}

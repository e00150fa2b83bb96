package cause

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Hidden stands in a remembered essence for a value of which only a digest is known. In JSON, it is null: whatever is
// decoded from it is zero.
type Hidden struct{ digest string }

// MarshalJSON gives a null: neither a value nor its digest is anybody's business.
func (Hidden) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// String tells people why there is nothing.
func (Hidden) String() string { return "(redacted)" }

// Bare is a JSON value without what is hidden in it, fit for those who copy JSON: the keys are left out. It shares what
// has nothing hidden with the value, which is not modified.
func Bare(value map[string]any) map[string]any {
	// One look at everything, instead of one at each level: values may be nested deeply.
	bare, _ := bared(value)
	return bare
}

// bared tells whether anything was left out: if not, the mapping is the given one.
func bared(value map[string]any) (bare map[string]any, changed bool) {
	bare = value
	leave := func() {
		if !changed {
			bare, changed = maps.Clone(value), true
		}
	}
	for key, inner := range value {
		switch inner := inner.(type) {
		case Hidden:
			leave()
			delete(bare, key)
		case map[string]any:
			if without, differs := bared(inner); differs {
				leave()
				bare[key] = without
			}
		}
	}
	return bare, changed
}

func holdsHidden(value any) bool {
	switch value := value.(type) {
	case Hidden:
		return true
	case map[string]any:
		for _, inner := range value {
			if holdsHidden(inner) {
				return true
			}
		}
	}
	return false
}

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

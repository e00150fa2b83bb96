package diff

import (
	"slices"
	"strings"
)

// A Path is the list of keys from a value to a place inside of it. A nil or empty path is the value itself, the root.
// Keys are used literally, so a key with dots or slashes is one element. Paths do not lead into lists: no element is an
// index.
type Path []string

// ParsePath splits a field specification, such as "spec.template.metadata", at the dots. There is no escaping, so a key
// with a dot needs a Path literal. As in Kopf, "" is the path of one empty key; the root is nil.
func ParsePath(spec string) Path {
	return strings.Split(spec, ".")
}

// String joins the keys with dots, for logs and handler ids. [ParsePath] reverses it unless a key has a dot or the path
// is the root, which returns "".
func (p Path) String() string {
	return strings.Join(p, ".")
}

// HasPrefix reports whether the path begins with these keys: "spec.nodes" and all paths below it have the prefix
// "spec", "nodes". Every path has the empty prefix.
func (p Path) HasPrefix(prefix ...string) bool {
	return len(p) >= len(prefix) && slices.Equal(p[:len(prefix)], prefix)
}

// withoutFirst returns the path without its first n keys. It returns nil if no key remains, so that the root has one
// form only.
func (p Path) withoutFirst(n int) Path {
	if len(p) <= n {
		return nil
	}
	return p[n:]
}

// ResolvePath returns the value at a path. It returns false if there is no such place: a key is absent, or the path
// leads through a value that is not a mapping (a list, a scalar, null). For a null at the path, it returns (nil, true);
// the caller decides whether that differs from absence.
func ResolvePath(value any, path Path) (any, bool) {
	for _, key := range path {
		mapping, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = mapping[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

// Reduce returns the diff of a field, as handlers of the field get it: only the differences at or below the field, with
// paths relative to it, or nil if there are none. For the root (a nil or empty field), it returns the diff itself.
//
// Before and after are the values from which the diff was computed, not the field's values. An item above the field,
// such as the addition of the whole spec, is replaced by the differences between the field's values, in which an absent
// or unreachable value is null. These values are taken from before and after instead of the item, because the item's
// values can be withheld.
func (d Diff) Reduce(field Path, before, after any) Diff {
	if len(field) == 0 {
		return d
	}
	var reduced Diff
	for _, item := range d {
		switch {
		case item.Path.HasPrefix(field...):
			item.Path = item.Path.withoutFirst(len(field))
			reduced = append(reduced, item)
		case field.HasPrefix(item.Path...):
			// A place that does not exist is nil, which a diff treats as absence.
			beforeValue, _ := ResolvePath(before, field)
			afterValue, _ := ResolvePath(after, field)
			reduced = append(reduced, Compute(beforeValue, afterValue)...)
		}
	}
	return reduced
}

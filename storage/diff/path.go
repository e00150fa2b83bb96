package diff

import "strings"

// A Path is the keys from a value down to a place inside it; nil or empty is the value itself, the root. Keys are
// used as they are, so a key with dots or slashes is one element. Lists are never entered: no element is an index.
type Path []string

// ParsePath splits a field specification, such as "spec.template.metadata", at the dots; there is no escaping, so a
// key with a dot needs a Path literal. As in Kopf, "" is the path of one empty key, not the root: the root is nil.
func ParsePath(spec string) Path {
	return strings.Split(spec, ".")
}

// String joins the keys by dots, for logs and handler ids. [ParsePath] reverses it unless a key has a dot; the root
// gives "", as the path of one empty key does.
func (p Path) String() string {
	return strings.Join(p, ".")
}

// HasPrefix tells whether the path leads to or into the place at these keys: "spec.nodes" and all below it have the
// prefix "spec", "nodes". No keys are a prefix of all paths.
func (p Path) HasPrefix(prefix ...string) bool {
	if len(p) < len(prefix) {
		return false
	}
	for i, key := range prefix {
		if p[i] != key {
			return false
		}
	}
	return true
}

// from is the path without its first n keys; nil once nothing is left, so that the root has one form only.
func (p Path) from(n int) Path {
	if len(p) <= n {
		return nil
	}
	return p[n:]
}

// Resolve returns the value at the path inside the given one. False means that there is no such place: a key is
// missing, or the path runs through something that is not a mapping (a list, a scalar, null). A null at the path is
// (nil, true): whether that differs from absence is for the caller to decide.
func Resolve(value any, path Path) (any, bool) {
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

// Reduce narrows a diff down to what a handler of the field sees: only the differences at or below the field, with
// paths relative to it; nil if there are none. The root (a nil or empty field) gives the diff itself.
//
// Before and after are the two whole values that the diff was computed from, not the field's values. An item above the
// field, such as the whole spec being added, is replaced by the differences between the field's values inside them,
// where an absent or unreachable one is null. They are taken from there and not from the item, so that a diff whose
// items had their values withheld can be reduced too.
func (d Diff) Reduce(field Path, before, after any) Diff {
	if len(field) == 0 {
		return d
	}
	var reduced Diff
	for _, item := range d {
		switch {
		case item.Path.HasPrefix(field...):
			item.Path = item.Path.from(len(field))
			reduced = append(reduced, item)
		case field.HasPrefix(item.Path...):
			// A failed resolution gives nil, which is how a diff sees absence.
			beforeValue, _ := Resolve(before, field)
			afterValue, _ := Resolve(after, field)
			reduced = append(reduced, Compute(beforeValue, afterValue)...)
		}
	}
	return reduced
}

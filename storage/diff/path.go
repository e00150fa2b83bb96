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

// hasPrefix tells whether the path leads to or into the place at the prefix.
func (p Path) hasPrefix(prefix Path) bool {
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

package console

import (
	"fmt"
	"slices"
)

// referenceKeys are those by which loggers say which object their lines are about, in the order of Kopf's references.
var referenceKeys = []string{"apiVersion", "kind", "name", "uid", "namespace"}

// reference says which object a line is about. It is that of the logger: what a message has under the same keys is
// about something else.
type reference struct {
	// values are those of [referenceKeys], as far as they are known.
	values [5]string
	known  [5]bool
}

// take takes the field if it is the first that says this of the object. An object without a namespace has none,
// whatever is said later.
func (r *reference) take(f field) bool {
	at := slices.Index(referenceKeys, f.key)
	if at < 0 || r.has(f.key) {
		return false
	}
	text, isText := f.value.(string)
	if !isText {
		stringer, ok := f.value.(fmt.Stringer)
		if !ok {
			return false
		}
		text = valueText(stringer)
	}
	r.values[at], r.known[at] = text, true
	return true
}

// has tells whether the reference has the key for itself.
func (r *reference) has(key string) bool {
	at := slices.Index(referenceKeys, key)
	return at >= 0 && (r.known[at] || key == "namespace" && r.isObject())
}

// isObject is false for a kind, or a namespace, alone.
func (r *reference) isObject() bool { return r.known[slices.Index(referenceKeys, "name")] }

// prefix is what lines have in front of their messages: the namespace and the name.
func (r *reference) prefix() string {
	name, namespace := r.values[2], r.values[4]
	if namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// release makes fields of what is known where there is no object.
func (r *reference) release(fields *[]field) {
	if r.isObject() {
		return
	}
	for at, key := range referenceKeys {
		if r.known[at] {
			*fields = append(*fields, field{key, r.values[at]})
		}
	}
}

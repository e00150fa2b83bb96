package console

import (
	"fmt"
	"slices"
)

// referenceKeys are the keys by which loggers identify the object of their lines, in the order of Kopf's references.
var referenceKeys = []string{"apiVersion", "kind", "name", "uid", "namespace"}

// reference identifies the object of a line. It comes from the logger: values of a message under the same keys concern
// other objects.
type reference struct {
	// values are the known values of [referenceKeys].
	values [5]string
	isSet  [5]bool
}

// adoptField adopts the field if it is the first one for its key. A cluster-scoped object has no namespace, so a later
// one is not adopted.
func (r *reference) adoptField(f field) bool {
	at := slices.Index(referenceKeys, f.key)
	if at < 0 || r.hasKey(f.key) {
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
	r.values[at], r.isSet[at] = text, true
	return true
}

// hasKey reports whether the reference uses the key.
func (r *reference) hasKey(key string) bool {
	at := slices.Index(referenceKeys, key)
	return at >= 0 && (r.isSet[at] || key == "namespace" && r.isObject())
}

// isObject reports whether an object is identified. A kind or a namespace alone is not an object.
func (r *reference) isObject() bool { return r.isSet[slices.Index(referenceKeys, "name")] }

// messagePrefix returns "namespace/name", or the name of a cluster-scoped object, for the beginning of messages.
func (r *reference) messagePrefix() string {
	name, namespace := r.values[2], r.values[4]
	if namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// releaseFields turns the known values into normal fields if they do not identify an object.
func (r *reference) releaseFields(fields *[]field) {
	if r.isObject() {
		return
	}
	for at, key := range referenceKeys {
		if r.isSet[at] {
			*fields = append(*fields, field{key, r.values[at]})
		}
	}
}

package diffbase

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// lastApplied is where kubectl keeps its own memory: it changes with every change that is seen elsewhere anyway.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// build makes the essence that all storages begin with: without their own keys and ignored fields yet. The own names
// are annotations that the caller will remove anyway: known here, the annotations are copied once, not twice.
func build(body map[string]any, extra []diff.Path, own []string) (Essence, error) {
	annotations, err := storage.Annotations(body)
	if err != nil {
		return nil, err
	}
	essence := make(Essence, len(body))
	for key, value := range body {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			essence[key] = value
		}
	}
	metadata, _ := body["metadata"].(map[string]any)
	if identity := identity(metadata, essential(annotations, own)); len(identity) > 0 {
		essence["metadata"] = identity
	}
	if essence, err = restore(essence, body, extra); err != nil {
		return nil, err
	}
	return storage.Trim(essence), nil
}

// identity is the part of the metadata that users write: labels and annotations. Other fields are the system's.
func identity(metadata, annotations map[string]any) map[string]any {
	identity := make(map[string]any, 2)
	if labels, ok := metadata["labels"]; ok {
		identity["labels"] = labels
	}
	if len(annotations) > 0 {
		identity["annotations"] = annotations
	}
	return identity
}

// essential is the annotations without those that operators and kubectl write: the same mapping if there are none.
func essential(annotations map[string]any, own []string) map[string]any {
	marked := keys.MarkedPrefixes(annotations)
	_, applied := annotations[lastApplied]
	if marked == nil && !applied && !slices.ContainsFunc(own, func(name string) bool {
		_, ok := annotations[name]
		return ok
	}) {
		return annotations
	}
	remaining := make(map[string]any, len(annotations))
	for name, value := range annotations {
		if name != lastApplied && !slices.Contains(own, name) && !marked.Cover(name) {
			remaining[name] = value
		}
	}
	return remaining
}

// restore puts the extra fields of the body into its essence, as they are: a field of all annotations is all of them.
func restore(essence Essence, body map[string]any, extra []diff.Path) (Essence, error) {
	for _, field := range extra {
		value, ok, err := resolve(body, field)
		if err != nil {
			return nil, err
		}
		if ok && !isWhole(field[0]) {
			essence = storage.With(essence, field, value)
		}
	}
	return essence, nil
}

// isWhole tells whether everything under a top-level key is in the essence from the beginning.
func isWhole(key string) bool {
	switch key {
	case "apiVersion", "kind", "metadata", "status":
		return false
	}
	return true
}

var errWholeObject = errors.New("a field of an essence cannot be the object as a whole")

// resolve is stricter than [diff.Resolve], as Kopf is: a field inside of a string is no absent field. Who takes it for
// one leaves it out.
func resolve(body map[string]any, field diff.Path) (any, bool, error) {
	if len(field) == 0 {
		return nil, false, fmt.Errorf("tracking a field: %w", errWholeObject)
	}
	value := any(body)
	for depth, key := range field {
		mapping, ok := value.(map[string]any)
		if !ok {
			return nil, false, fmt.Errorf("tracking the field %s: %s is not a mapping", field, field[:depth])
		}
		if value, ok = mapping[key]; !ok {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// ignore removes fields from an essence. What is inside of something else than a mapping is not there to be removed.
func ignore(essence Essence, fields []diff.Path) (Essence, error) {
	for _, field := range fields {
		if len(field) == 0 {
			return nil, fmt.Errorf("ignoring a field: %w", errWholeObject)
		}
		if remaining, err := storage.Without(essence, field); err == nil {
			essence = remaining
		}
	}
	return essence, nil
}

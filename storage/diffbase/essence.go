package diffbase

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// lastAppliedKey is the annotation in which kubectl stores the applied configuration. It is ignored, because each of
// its changes also shows elsewhere in the object.
const lastAppliedKey = "kubectl.kubernetes.io/last-applied-configuration"

// buildEssence returns the essence with which all storages begin. It still has the ignored fields and the storage's own
// fields. The own names are annotations that the caller removes later; they are removed here already, so that the
// annotations are copied once instead of twice.
func buildEssence(body map[string]any, extra []diff.Path, own []string) (Essence, error) {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil {
		return nil, err
	}
	essence := make(Essence, len(body))
	for key, value := range body {
		switch key {
		// The metadata is added below without the fields of the system.
		case "apiVersion", "kind", "metadata", "status":
		default:
			essence[key] = value
		}
	}
	metadata, _ := body["metadata"].(map[string]any)
	if identity := userMetadata(metadata, configurationAnnotations(annotations, own)); len(identity) > 0 {
		essence["metadata"] = identity
	}
	// The extra fields come last, because they override the exclusions above.
	if essence, err = addExtraFields(essence, body, extra); err != nil {
		return nil, err
	}
	return storage.TrimEssence(essence), nil
}

// userMetadata returns the part of the metadata that users write: labels and annotations. The system manages the other
// fields.
func userMetadata(metadata, annotations map[string]any) map[string]any {
	identity := make(map[string]any, 2)
	// Empty labels are removed by Trim, after the extra fields are known.
	if labels, ok := metadata["labels"]; ok {
		identity["labels"] = labels
	}
	if len(annotations) > 0 {
		identity["annotations"] = annotations
	}
	return identity
}

// configurationAnnotations returns the annotations without those of operators and of kubectl. If there are no such
// annotations, it returns the same mapping and does not allocate.
func configurationAnnotations(annotations map[string]any, own []string) map[string]any {
	marked := keys.MarkedPrefixes(annotations)
	_, applied := annotations[lastAppliedKey]
	if marked == nil && !applied && !slices.ContainsFunc(own, func(name string) bool {
		_, ok := annotations[name]
		return ok
	}) {
		return annotations
	}
	remaining := make(map[string]any, len(annotations))
	for name, value := range annotations {
		if name != lastAppliedKey && !slices.Contains(own, name) && !marked.CoversKey(name) {
			remaining[name] = value
		}
	}
	return remaining
}

// addExtraFields adds the extra fields of the body to its essence, unfiltered: if a handler selects all annotations,
// the essence has all annotations.
func addExtraFields(essence Essence, body map[string]any, extra []diff.Path) (Essence, error) {
	for _, field := range extra {
		value, ok, err := resolveExtraField(body, field)
		if err != nil {
			return nil, err
		}
		if ok && !isAlwaysIncluded(field[0]) {
			essence = storage.WithValue(essence, field, value)
		}
	}
	return essence, nil
}

// isAlwaysIncluded reports whether the essence has everything under a top-level key already.
func isAlwaysIncluded(key string) bool {
	switch key {
	case "apiVersion", "kind", "metadata", "status":
		return false
	}
	return true
}

// errWholeObject is the error of an empty path.
var errWholeObject = errors.New("a field of an essence cannot be the object as a whole")

// resolveExtraField returns the value of an extra field. It is stricter than [diff.ResolvePath], as Kopf is: a field
// inside of a string is an error and not an absent field. Otherwise, the essence would silently lack it.
func resolveExtraField(body map[string]any, field diff.Path) (any, bool, error) {
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

// removeIgnoredFields removes fields from an essence. A field inside of a value that is not a mapping does not exist,
// so it needs no removal.
func removeIgnoredFields(essence Essence, fields []diff.Path) (Essence, error) {
	for _, field := range fields {
		if len(field) == 0 {
			return nil, fmt.Errorf("ignoring a field: %w", errWholeObject)
		}
		if remaining, err := storage.WithoutValue(essence, field); err == nil {
			essence = remaining
		}
	}
	return essence, nil
}
